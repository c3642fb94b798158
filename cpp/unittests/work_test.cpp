// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/work.h"

#include "hlo_text.h"
#include "testing.h"

#include <random>
#include <utility>

using namespace hlotag::hlo;
using hlotag::testing::HloText;

namespace {

/// The work of the instructions of a module, by name.
class Measured {
public:
  explicit Measured(const std::string &module)
      : text_(module), work_(measureWork(Module(text_.data))) {}
  const Work &operator[](const std::string &name) const { return work_[text_.number(name)]; }

private:
  HloText text_;
  std::vector<Work> work_;
};

} // namespace

TEST(work_of_a_product_is_two_flops_for_each_pair) {
  Measured work(R"(
    main:
      x = parameter[4,8]
      y = parameter[8,16] index=1
      d = dot[4,16](x, y) contracting=1)");
  CHECK_EQ(work["x"].effort(), uint64_t(0));
  CHECK_EQ(work["d"].flops, uint64_t(2 * 4 * 16 * 8));
  CHECK_EQ(work["d"].bytes, uint64_t(4 * 4 * 16));
}

TEST(work_of_a_product_of_a_library_is_in_its_configuration) {
  Measured work(R"(
    main:
      x = parameter[4,8]
      y = parameter[8,16] index=1
      d = custom-call[4,16](x, y) target=__cublas$gemm config="lhs_contracting_dimensions":["1"]
      n = custom-call[4,16](x, y) target=__cublas$gemm config="alpha":["0"]
      o = custom-call[4,16](x, y) target=mine
      g = custom-call[4,16](x, y) target=AsyncCollectiveDone
      s = custom-call[4,16](x, y) target=__cublas$gemm scratch=4096
      k = custom-call[4,16](x, y) target=tpu_custom_call config="cost_estimate":"flops":"70","transcendentals":"7","bytes":"9")");
  CHECK_EQ(work["d"].flops, uint64_t(2 * 4 * 16 * 8));
  CHECK_EQ(work["d"].bytes, uint64_t(4 * (4 * 8 + 8 * 16 + 4 * 16)));
  CHECK_EQ(work["s"].bytes, work["d"].bytes); // Scratch memory is no result.
  CHECK_EQ(work["n"].flops, uint64_t(2 * 4 * 16));
  CHECK_EQ(work["o"].flops, uint64_t(0));
  CHECK(work["o"].bytes > 0);
  CHECK_EQ(work["g"].bytes, uint64_t(0)); // It only joins the ends of a collective.
  CHECK_EQ(work["k"].flops, uint64_t(77));
}

TEST(work_within_a_fusion_reaches_no_memory) {
  Measured work(R"(
    fused:
      p = parameter[64]
      b = broadcast[64](p)
      a = add[64](p, b)
    main:
      x = parameter[64]
      f = fusion[64](x) calls=fused)");
  CHECK_EQ(work["b"].effort(), uint64_t(0)); // Stays in the fusion.
  CHECK_EQ(work["a"].flops, uint64_t(64));
  CHECK_EQ(work["a"].bytes, uint64_t(256));  // Is the fusion's result.
  CHECK_EQ(work["f"].effort(), uint64_t(0)); // What is in it has the work.
}

TEST(work_of_what_a_fusion_returns_reaches_memory_through_bitcasts) {
  Measured work(R"(
    fused:
      p = parameter[64]
      a = add[64](p, p)
      b = bitcast[8,8](a)
      m = multiply[64](p, p)
      t = tuple(b, m)
    main:
      x = parameter[64]
      f = fusion(x) calls=fused)");
  CHECK_EQ(work["a"].bytes, uint64_t(256));
  CHECK_EQ(work["m"].bytes, uint64_t(256));
}

TEST(work_of_each_heavy_opcode) {
  const std::pair<std::string, uint64_t> measured[] = {
      {"all-reduce[8](x)", 8},
      {"all-reduce-start[8](x)", 8},
      {"cholesky[6,6](m)", 6 * 6 * 6 / 3},
      {"convolution[4,5](m, m)", 2 * 6 * 6 * 6}, // Without dimensions, each is the first.
      {"fft[8](x) length=8", 2 * 4 * 8 * 3},
      {"map[8](x) calls=sum", 8},
      {"reduce-scatter[4](x)", 4},
      {"reduce-window[8](x, x) calls=sum window=3", 8 * 2},
      {"reduce-window[8](x, x) calls=sum window=8,1,7", 8 * 7},  // A cumulative sum.
      {"reduce-window[8](x, x) calls=sum window=15,1,7", 8 - 1}, // Each result is the whole sum.
      // With holes in the window or in the input it is not.
      {"reduce-window[8](x, x) calls=sum window=15,1,7,2", 8 * 14},
      {"reduce-window[8](x, x) calls=sum window=15,1,7,1,2", 8 * 14},
      {"reduce-window[1](none, x) calls=sum window=3,1,3", 3 - 1}, // Of padding alone.
      {"rng[8](x)", 8},
      {"rng-bit-generator[8](x)", 8},
      {"scatter[9](x, x, u) calls=sum", 5},
      {"select-and-scatter[9](x, u) calls=sum,sum window=3", 5 * (2 + 1)},
      {"sort[8](x)", 8 * 3},
      {"sort[5](u)", 5 * 3}, // The logarithm is rounded up.
      {"triangular-solve[6,2](m, m)", 2 * 6 * 2 * 6},
  };
  for (const auto &[instruction, flops] : measured) {
    Measured work("sum:\n p = parameter\n s = add(p, p)\n main:\n x = parameter[8]\n"
                  "m = parameter[6,6]\n u = parameter[5]\n none = parameter[0]\n made = " +
                  instruction);
    hlotag::testing::checkEqual(__FILE__, __LINE__, instruction.c_str(), work["made"].flops, flops);
  }
}

TEST(work_of_moves_is_what_they_write) {
  Measured work(R"(
    sum:
      p = parameter
      s = add(p, p)
    main:
      x = parameter[100]
      u = parameter[10]
      slice = dynamic-update-slice[100](x, u, u)
      scatter = scatter[100](x, u, u) calls=sum
      begin = copy-start[200](x)
      end = copy-done[100](begin)
      sum = all-reduce-start[100](x)
      all = concatenate[120](x, u, u)
      names = tuple(x, u))");
  CHECK_EQ(work["slice"].bytes, uint64_t(40));
  CHECK_EQ(work["scatter"].bytes, uint64_t(40));
  CHECK_EQ(work["begin"].bytes, uint64_t(400)); // The operand is in the result.
  CHECK_EQ(work["end"].bytes, uint64_t(0));
  CHECK_EQ(work["sum"].bytes, uint64_t(400)); // The result has no operand in it.
  CHECK_EQ(work["all"].bytes, uint64_t(480));
  CHECK_EQ(work["names"].effort(), uint64_t(0));
}

TEST(work_of_a_gather_is_what_it_reads) {
  Measured work("main:\n x = parameter[1000]\n g = gather[10](x)");
  CHECK_EQ(work["g"].flops, uint64_t(0));
  CHECK_EQ(work["g"].bytes, uint64_t(40));
  CHECK_EQ(work["g"].effort(), uint64_t(10));
}

TEST(work_that_is_applied_belongs_to_who_applies_it) {
  Measured work(R"(
    sum:
      p = parameter
      s = add(p, p)
    main:
      x = parameter[100]
      r = reduce[10](x, x) calls=sum)");
  CHECK_EQ(work["s"].effort(), uint64_t(0));
  CHECK_EQ(work["r"].flops, uint64_t(90));
}

static uint64_t flopsOfConvolution(int64_t input, int64_t output, const std::string &window) {
  return Measured("main:\n x = parameter[1," + std::to_string(input) +
                  "]\n k = parameter[1] index=1\n c = convolution[1," + std::to_string(output) +
                  "](x, k) spatial=1 window=" + window)["c"]
      .flops;
}

TEST(work_of_a_convolution_counts_what_meets_an_element) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int tries = 0; tries < 500; ++tries) {
    int64_t input = upTo(1, 6), output = upTo(1, 7), size = upTo(1, 5), stride = upTo(1, 4);
    int64_t padding = upTo(0, 3), dilation = upTo(1, 3), base = upTo(1, 6);
    uint64_t meetings = 0;
    for (int64_t place = 0; place < size; ++place)
      for (int64_t at = 0; at < output; ++at) {
        int64_t read = place * dilation + at * stride - padding;
        meetings += read >= 0 && read % base == 0 && read / base < input;
      }
    std::string window;
    for (int64_t number : {size, stride, padding, dilation, base})
      window += std::to_string(number) + ",";
    hlotag::testing::checkEqual(__FILE__, __LINE__, window.c_str(),
                                flopsOfConvolution(input, output, window), 2 * meetings);
  }
}

TEST(work_of_a_convolution_of_a_library_is_that_of_the_forward_one) {
  Measured work(R"(
    main:
      x = parameter[1,8]
      k = parameter[2] index=1
      y = custom-call[1,6](x, k) target=__cudnn$convForward spatial=1 window=3
      i = custom-call[1,8](y, k) target=__cudnn$convBackwardInput spatial=1 window=3
      f = custom-call[2](x, y) target=__cudnn$convBackwardFilter spatial=1 window=3)");
  for (const char *convolution : {"y", "i", "f"})
    CHECK_EQ(work[convolution].flops, uint64_t(2 * 2 * 2 * 3 * 6));
}

TEST(work_of_a_hostile_window_is_some_number) {
  for (const char *window : {"3,4294967296,1,1,4294967296", "1,1,0,1,1099511627776",
                             "9223372036854775807,9223372036854775807,9223372036854775807,"
                             "9223372036854775807,9223372036854775807",
                             "0,0,0,0,0"})
    CHECK(flopsOfConvolution(4, int64_t(1) << 40, window) < ~uint64_t(0));
}
