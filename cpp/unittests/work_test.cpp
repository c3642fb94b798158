// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/work.h"

#include "hlo_text.h"
#include "testing.h"

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
      o = custom-call[4,16](x, y) target=mine)");
  CHECK_EQ(work["d"].flops, uint64_t(2 * 4 * 16 * 8));
  CHECK_EQ(work["o"].flops, uint64_t(0));
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
