// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/work.h"

#include "fields.h"
#include "hlotag/hlo/wire.h"
#include "hlotag/ir/support.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

namespace hlotag::hlo {

using wire::bytesIn;
using wire::numberIn;
using wire::numbersIn;

namespace {

constexpr uint64_t kFma = 2;          // flops of a multiplication and an addition
constexpr int64_t kS8 = 2, kU8 = 6;   // of XLA's `PrimitiveType`
constexpr uint64_t kFmaOfComplex = 4; // such pairs in a product of complex numbers

/// The arrays of a shape: one, or those in a tuple.
struct Size {
  uint64_t elements = 0, bytes = 0;
};

/// Returns the bits of an element, by XLA's `PrimitiveType`; 8 for types of a few bits, 0 for
/// tuples and tokens.
uint64_t bitsOf(int64_t type) {
  // Nothing, PRED, S8 to S64, U8 to U64, F16 to F64, tuple, opaque, C64, BF16, token, C128.
  constexpr uint8_t kBits[] = {0,  8,  8,  16, 32, 64, 8,  16, 32, 64,
                               16, 32, 64, 0,  0,  64, 16, 0,  128};
  return size_t(type) < std::size(kBits) ? kBits[type] : 8;
}

Size sizeOf(std::string_view shape) {
  Size size;
  std::vector<std::string_view> pending{shape};
  while (!pending.empty()) {
    std::string_view next = pending.back();
    pending.pop_back();
    for (wire::Message field(next); field.next();)
      if (field.field() == fields::shape::kTupleShapes)
        pending.push_back(field.bytes());
    if (uint64_t bits = bitsOf(numberIn(next, fields::shape::kElementType, 0))) {
      uint64_t elements = numElements(dimensionsOf(next));
      size.elements += elements;
      size.bytes += elements * bits / 8;
    }
  }
  return size;
}

/// The text after `"key":` in a JSON text, up to the first `end`; empty without the key.
std::string_view findInJson(std::string_view text, std::string_view key, char end) {
  size_t start = text.find('"' + std::string(key) + "\":");
  return start == text.npos
             ? ""
             : text.substr(start, text.find(end, start) - start).substr(key.size() + 3);
}

/// The numbers in a part of a JSON text, such as `["1","2"]`.
Numbers numbersInJson(std::string_view text) {
  Numbers found;
  for (size_t at; (at = text.find_first_of("0123456789")) != text.npos;) {
    text.remove_prefix(at);
    size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    found.push_back(std::stoll(std::string(text.substr(0, std::min<size_t>(end, 18)))));
    text.remove_prefix(end);
  }
  return found;
}

uint64_t floorLog(uint64_t number) {
  uint64_t log = 0;
  while (number >>= 1)
    ++log;
  return log;
}

uint64_t ceilingLog(uint64_t number) { return number < 2 ? 0 : floorLog(number - 1) + 1; }

/// One dimension of a window.
struct Window {
  int64_t size = 1, stride = 1, padding = 0, dilation = 1, baseDilation = 1;
};

std::vector<Window> windowsIn(std::string_view message) {
  using namespace fields::window;
  std::vector<Window> windows;
  for (wire::Message field(bytesIn(message, fields::instruction::kWindow)); field.next();) {
    if (field.field() != kDimensions)
      continue;
    std::string_view data = field.bytes();
    windows.push_back({numberIn(data, kSize, 1), numberIn(data, kStride, 1),
                       numberIn(data, kPaddingLow, 0), numberIn(data, kDilation, 1),
                       numberIn(data, kBaseDilation, 1)});
  }
  return windows;
}

/// Bounds of sizes and windows, so that no product of two overflows in a malformed module.
constexpr int64_t kMaxSize = int64_t(1) << 31;
constexpr int64_t kMaxWindow = 1 << 20;

int64_t limit(int64_t number, int64_t low, int64_t high = kMaxSize) {
  return std::min(std::max(number, low), high);
}

/// Returns the remainder that is not negative.
int64_t modulo(int64_t number, int64_t divisor) {
  int64_t rest = number % divisor;
  return rest < 0 ? rest + divisor : rest;
}

int64_t divideDown(int64_t number, int64_t divisor) {
  return (number - modulo(number, divisor)) / divisor;
}

/// Returns `x` with `factor * x = 1` modulo `divisor`, which has no factor in common with it.
int64_t invert(int64_t factor, int64_t divisor) {
  int64_t rest = divisor, next = modulo(factor, divisor), x = 0, nextX = 1;
  while (next != 0) {
    int64_t quotient = rest / next;
    rest = std::exchange(next, rest - quotient * next);
    x = std::exchange(nextX, x - quotient * nextX);
  }
  return modulo(x, divisor);
}

/// Returns how many pairs of a place in the window and one in the result meet an element, and not
/// padding or a hole, in one dimension.
uint64_t countMeetings(const Window &window, int64_t input, int64_t output) {
  int64_t base = limit(window.baseDilation, 1), stride = limit(window.stride, 1);
  int64_t dilation = limit(window.dilation, 1), padding = limit(window.padding, -kMaxSize);
  int64_t last = (limit(input, 0) - 1) * base; // the place of the last element
  int64_t common = std::gcd(stride, base), period = base / common;
  int64_t inverse = invert(stride / common, period);
  uint64_t count = 0;
  for (int64_t place = 0; place < limit(window.size, 0, kMaxWindow); ++place) {
    int64_t first = place * dilation - padding; // met by the result's place 0
    if (first % common != 0)
      continue;
    // The result's places that meet no hole: this one, and others a period apart.
    int64_t whole = modulo(modulo(-first / common, period) * inverse, period);
    int64_t low = std::max<int64_t>(0, -divideDown(first, stride));
    int64_t high = std::min(limit(output, 0) - 1, divideDown(last - first, stride));
    if (high >= low)
      count += uint64_t(divideDown(high - whole, period) - divideDown(low - 1 - whole, period));
  }
  return count;
}

/// Returns whether a window has all elements of the input at each place in the result.
bool hasWholeInput(const Window &window, int64_t input, int64_t output) {
  int64_t stride = limit(window.stride, 1), padding = limit(window.padding, -kMaxSize);
  return window.dilation == 1 && window.baseDilation == 1 && input > 0 &&
         padding >= (limit(output, 1) - 1) * stride &&
         limit(window.size, 1) - padding >= limit(input, 0);
}

class Meter {
public:
  explicit Meter(const Module &module)
      : module_(module), ofComputation_(module.computations.size()),
        isApplied_(findApplied(module)), isWritten_(module.instructions.size()) {
    findWritten();
  }

  std::vector<Work> measure() {
    std::vector<Work> work(module_.instructions.size());
    sizes_.reserve(work.size());
    for (size_t i = 0; i < work.size(); ++i) { // operands and callees first
      sizes_.push_back(sizeOf(module_.instructions[i].shape));
      Work made{flops(i), bytes(i)};
      size_t computation = module_.instructions[i].computation;
      ofComputation_[computation] += made.flops;
      if (!isApplied_[computation])
        work[i] = made;
    }
    return work;
  }

private:
  using Measure = uint64_t (Meter::*)(size_t) const;

  /// Marks the values that are written to memory: those outside of fusions, and results of fusions.
  void findWritten() {
    std::vector<int64_t> fusions = findFusions(module_);
    for (size_t i = 0; i < isWritten_.size(); ++i) {
      if (fusions[module_.instructions[i].computation] == kNone)
        isWritten_[i] = true;
      if (module_.kind(i).is(kFusion))
        markResults(module_.computations[elementAt(module_.instructions[i].called, 0)].root);
    }
  }

  void markResults(size_t root) {
    std::vector<size_t> pending{root};
    while (!pending.empty()) {
      size_t i = pending.back();
      pending.pop_back();
      isWritten_[i] = true;
      const Kind &kind = module_.kind(i);
      if (kind.is(kTuple) || kind.name == "bitcast" || kind.is(kElement))
        for (size_t operand : module_.instructions[i].operands)
          if (!isWritten_[operand])
            pending.push_back(operand);
    }
  }

  uint64_t flops(size_t i) const {
    static const std::map<std::string_view, Measure> kMeasures = {
        {"all-reduce", &Meter::elements},
        {"all-reduce-start", &Meter::elements},
        {"cholesky", &Meter::cholesky},
        {"convolution", &Meter::convolution},
        {"custom-call", &Meter::customCall},
        {"dot", &Meter::dot},
        {"fft", &Meter::fft},
        {"map", &Meter::map},
        {"reduce", &Meter::reduce},
        {"reduce-scatter", &Meter::elements},
        {"reduce-window", &Meter::reduceWindow},
        {"rng", &Meter::elements},
        {"rng-bit-generator", &Meter::elements},
        {"scatter", &Meter::scatter},
        {"select-and-scatter", &Meter::selectAndScatter},
        {"sort", &Meter::sort},
        {"triangular-solve", &Meter::triangularSolve},
    };
    auto found = kMeasures.find(module_.kind(i).name);
    if (found != kMeasures.end())
      return (this->*found->second)(i);
    return module_.kind(i).cost == Cost::Pointwise ? elements(i) : 0;
  }

  uint64_t bytes(size_t i) const {
    const Kind &kind = module_.kind(i);
    size_t numOperands = module_.instructions[i].operands.size();
    if (kind.name == "dynamic-update-slice")
      return sizeOfOperand(i, 1).bytes;
    if (kind.name == "scatter") // (inputs, indices, updates)
      return sizeOfOperand(i, numOperands - 1).bytes * (numOperands / 2);
    if (kind.name == "custom-call")
      return isGlue(i) ? 0 : sizes_[i].bytes - scratchBytes(i) + bytesOfOperands(i);
    bool isAccess = kind.isHeavy() || kind.name == "concatenate" || kind.name == "copy" ||
                    kind.name == "copy-start" || kind.name == "dynamic-slice" || kind.name == "pad";
    bool isValue = kind.cost == Cost::Pointwise || kind.cost == Cost::Layout;
    if (kind.is(kRunsOthers) || kind.is(kDone) || !(isAccess || (isValue && isWritten_[i])))
      return 0;
    // The result of an asynchronous start has the operands in it.
    uint64_t all = sizes_[i].bytes, given = bytesOfOperands(i);
    return ir::endsWith(kind.name, "-start") && all > given ? all - given : all;
  }

  /// Whether TPU's compiler made a custom call that computes nothing: it joins prefetched parts, or
  /// is an end of a collective within fusions.
  bool isGlue(size_t i) const {
    static constexpr std::string_view kTargets[] = {"AllocateBuffer", "AsyncCollectiveDone",
                                                    "AsyncCollectiveStart", "ConcatBitcast"};
    std::string_view target = bytesIn(message(i), fields::instruction::kTarget);
    return std::find(std::begin(kTargets), std::end(kTargets), target) != std::end(kTargets);
  }

  /// The bytes of the scratch memory that a call of cuBLAS or cuDNN returns behind its results.
  uint64_t scratchBytes(size_t i) const {
    std::string_view target = bytesIn(message(i), fields::instruction::kTarget), last;
    if (target.substr(0, 9) != "__cublas$" && target.substr(0, 8) != "__cudnn$")
      return 0;
    for (wire::Message field(module_.instructions[i].shape); field.next();)
      if (field.field() == fields::shape::kTupleShapes)
        last = field.bytes();
    int64_t type = numberIn(last, fields::shape::kElementType, 0);
    return type == kS8 || type == kU8 ? sizeOf(last).bytes : 0;
  }

  uint64_t elements(size_t i) const { return sizes_[i].elements; }

  uint64_t dot(size_t i) const {
    std::string_view dimensions = bytesIn(message(i), fields::instruction::kDotDimensions);
    return product(i, numbersIn(dimensions, fields::dot::kLhsContracting));
  }

  /// The flops of a product whose first operand is summed over `contracting`.
  uint64_t product(size_t i, const Numbers &contracting) const {
    Numbers operand = module_.dimensions(operandOf(i, 0));
    uint64_t width = 1;
    for (int64_t dimension : contracting)
      if (size_t(dimension) < operand.size())
        width *= uint64_t(operand[size_t(dimension)]);
    return kFma * numElements(firstArray(i)) * width;
  }

  /// The flops that the configuration of one of TPU's kernels estimates, as XLA counts them.
  static uint64_t estimate(std::string_view config) {
    std::string_view cost = findInJson(config, "cost_estimate", '}');
    uint64_t flops = 0;
    for (const char *key : {"flops", "transcendentals"})
      for (int64_t number : numbersInJson(findInJson(cost, key, ',')))
        flops += uint64_t(number);
    return flops;
  }

  /// cuBLAS has the dimensions of the product in its configuration. cuDNN has those of the forward
  /// convolution, of which a backward one computes the input or the kernel.
  uint64_t customCall(size_t i) const {
    std::string_view target = bytesIn(message(i), fields::instruction::kTarget);
    std::string_view config = bytesIn(message(i), fields::instruction::kBackendConfig);
    if (target.substr(0, 9) == "__cublas$")
      return product(i, numbersInJson(findInJson(config, "lhs_contracting_dimensions", ']')));
    if (target.substr(0, 12) != "__cudnn$conv")
      return estimate(config);
    Numbers first = module_.dimensions(operandOf(i, 0)), result = firstArray(i);
    Numbers second = module_.dimensions(operandOf(i, 1));
    if (target == "__cudnn$convBackwardInput")
      return convolve(i, result, second, first);
    if (target == "__cudnn$convBackwardFilter")
      return convolve(i, first, result, second);
    return convolve(i, first, second, result);
  }

  uint64_t convolution(size_t i) const {
    return convolve(i, module_.dimensions(operandOf(i, 0)), module_.dimensions(operandOf(i, 1)),
                    firstArray(i));
  }

  /// The flops of a convolution with the window and dimensions of an instruction.
  uint64_t convolve(size_t i, const Numbers &input, const Numbers &kernel,
                    const Numbers &result) const {
    using namespace fields::convolution;
    std::string_view numbers = bytesIn(message(i), fields::instruction::kConvolutionDimensions);
    auto sizeAt = [](const Numbers &sizes, int64_t dimension) {
      return size_t(dimension) < sizes.size() ? uint64_t(sizes[size_t(dimension)]) : 1;
    };
    Numbers inputSpatial = numbersIn(numbers, kInputSpatial);
    Numbers outputSpatial = numbersIn(numbers, kOutputSpatial);
    std::vector<Window> windows = windowsIn(message(i));
    uint64_t meetings = 1;
    for (size_t d = 0; d < std::min({windows.size(), inputSpatial.size(), outputSpatial.size()});
         ++d)
      meetings *= countMeetings(windows[d], int64_t(sizeAt(input, inputSpatial[d])),
                                int64_t(sizeAt(result, outputSpatial[d])));
    uint64_t batch = sizeAt(input, numberIn(numbers, kInputBatch, 0));
    uint64_t groups =
        uint64_t(std::max<int64_t>(numberIn(message(i), fields::instruction::kBatchGroups, 1), 1));
    // The kernel's input features are those of one group.
    return kFma * (batch / groups) * sizeAt(kernel, numberIn(numbers, kKernelInput, 0)) *
           sizeAt(kernel, numberIn(numbers, kKernelOutput, 0)) * meetings;
  }

  uint64_t fft(size_t i) const {
    uint64_t factors = 1;
    for (int64_t length : numbersIn(message(i), fields::instruction::kFftLength))
      factors *= floorLog(uint64_t(length));
    return kFma * kFmaOfComplex * factors * sizeOfOperand(i, 0).elements;
  }

  uint64_t reduce(size_t i) const {
    size_t inputs = std::max<size_t>(module_.instructions[i].operands.size() / 2, 1);
    uint64_t taken = sizeOfOperand(i, 0).elements, made = elements(i) / inputs;
    return (taken > made ? taken - made : 0) * applied(i, 0);
  }

  /// As XLA counts it, with padding. A dimension whose windows all have the whole input is reduced
  /// once: TPU's compiler writes a sum that is broadcast again in this way.
  uint64_t reduceWindow(size_t i) const {
    Numbers input = module_.dimensions(operandOf(i, 0)), result = firstArray(i);
    std::vector<Window> windows = windowsIn(message(i));
    uint64_t pairs = 1, results = 1;
    for (size_t d = 0; d < std::min({windows.size(), input.size(), result.size()}); ++d) {
      bool isWhole = hasWholeInput(windows[d], input[d], result[d]);
      pairs *= isWhole ? uint64_t(input[d])
                       : uint64_t(result[d]) * uint64_t(std::max<int64_t>(windows[d].size, 1));
      results *= isWhole ? 1 : uint64_t(result[d]);
    }
    return pairs > results ? (pairs - results) * applied(i, 0) : 0;
  }

  uint64_t selectAndScatter(size_t i) const {
    return sizeOfOperand(i, 1).elements * ((windowSize(i) - 1) * applied(i, 0) + applied(i, 1));
  }

  uint64_t scatter(size_t i) const {
    return sizeOfOperand(i, module_.instructions[i].operands.size() - 1).elements * applied(i, 0);
  }

  uint64_t map(size_t i) const { return elements(i) * applied(i, 0); }

  uint64_t sort(size_t i) const {
    uint64_t sorted = sizeOfOperand(i, 0).elements;
    return sorted * ceilingLog(sorted);
  }

  uint64_t cholesky(size_t i) const { return elements(i) * lastDimension(operandOf(i, 0)) / 3; }

  uint64_t triangularSolve(size_t i) const {
    return kFma * elements(i) * lastDimension(operandOf(i, 0));
  }

  std::string_view message(size_t i) const { return module_.instructions[i].message; }
  size_t operandOf(size_t i, size_t number) const {
    return elementAt(module_.instructions[i].operands, number);
  }
  Size sizeOfOperand(size_t i, size_t number) const { return sizes_[operandOf(i, number)]; }
  uint64_t bytesOfOperands(size_t i) const {
    uint64_t bytes = 0;
    for (size_t operand : module_.instructions[i].operands)
      bytes += sizes_[operand].bytes;
    return bytes;
  }
  /// The dimensions of a result, or of the first one: a library's call returns scratch memory too.
  Numbers firstArray(size_t i) const {
    for (wire::Message field(module_.instructions[i].shape); field.next();)
      if (field.field() == fields::shape::kTupleShapes)
        return dimensionsOf(field.bytes());
    return module_.dimensions(i);
  }
  uint64_t lastDimension(size_t i) const {
    Numbers sizes = module_.dimensions(i);
    return sizes.empty() ? 1 : uint64_t(sizes.back());
  }
  uint64_t windowSize(size_t i) const {
    uint64_t size = 1;
    for (const Window &window : windowsIn(message(i)))
      size *= uint64_t(std::max<int64_t>(window.size, 1));
    return size;
  }
  /// The flops of one call of what an instruction applies.
  uint64_t applied(size_t i, size_t number) const {
    return ofComputation_[elementAt(module_.instructions[i].called, number)];
  }

  const Module &module_;
  std::vector<Size> sizes_;
  std::vector<uint64_t> ofComputation_; // Flops.
  std::vector<bool> isApplied_;         // By computation.
  std::vector<bool> isWritten_;
};

} // namespace

std::vector<Work> measureWork(const Module &module) { return Meter(module).measure(); }

} // namespace hlotag::hlo
