// SPDX-License-Identifier: Apache-2.0
#include "hlotag/hlo/opcodes.h"

#include "testing.h"

using namespace hlotag::hlo;

namespace {

bool mayBe(std::string_view operation, std::string_view opcode) {
  return hlotag::hlo::mayBe(Kind(operation), Kind(opcode));
}

bool isA(std::string_view operation, std::string_view opcode, Role role) {
  return roleOf(Kind(operation), Kind(opcode)) == role;
}

} // namespace

TEST(opcodes_of_operations) {
  CHECK_EQ(Kind("stablehlo.dot_general").becomes, "dot");
  CHECK_EQ(Kind("stablehlo.if").becomes, "conditional");
  CHECK_EQ(Kind("stablehlo.reduce_window").becomes, "reduce-window");
  CHECK_EQ(Kind("sdy.manual_computation").becomes, "call");
  CHECK_EQ(Kind("chlo.erf").becomes, "");
  CHECK_EQ(Kind("stablehlo.custom_call").becomes, "");
}

TEST(opcodes_cost) {
  for (std::string_view heavy : {"convolution", "dot", "reduce", "all-gather-start", "while"})
    CHECK(Kind(heavy).cost == Cost::Heavy);
  CHECK(Kind("tanh").cost == Cost::Pointwise);
  CHECK(Kind("slice").cost == Cost::Layout);
  CHECK(Kind("copy-start").cost == Cost::Glue);
  CHECK(!Kind("custom-call").isHeavy());
  CHECK(Kind("all-reduce-start").is(kCombines));
  CHECK(!Kind("all-reduce-done").is(kCombines));
  CHECK(Kind("all-reduce-done").is(kWraps));
}

TEST(opcodes_that_operations_become) {
  CHECK(mayBe("stablehlo.dot_general", "convolution"));
  CHECK(mayBe("stablehlo.convolution", "custom-call"));
  CHECK(mayBe("stablehlo.all_reduce", "reduce-scatter"));
  CHECK(!mayBe("stablehlo.sort", "dot"));
  CHECK(!mayBe("stablehlo.tanh", "dot"));
  CHECK(mayBe("stablehlo.divide", "multiply"));
  CHECK(mayBe("stablehlo.gather", "dynamic-slice"));
  CHECK(!mayBe("stablehlo.sort", "dynamic-slice"));
  CHECK(mayBe("stablehlo.transpose", "bitcast"));
  CHECK(mayBe("stablehlo.bitcast_convert", "bitcast"));
  CHECK(!mayBe("stablehlo.tanh", "copy"));
  CHECK(mayBe("stablehlo.broadcast_in_dim", "iota"));
  CHECK(!mayBe("stablehlo.reshape", "iota"));
  CHECK(mayBe("chlo.top_k", "sort"));
  CHECK(!mayBe("chlo.top_k", "while"));
}

TEST(opcodes_roles) {
  CHECK(isA("stablehlo.all_gather", "all-gather-start", Role::Computes));
  CHECK(isA("stablehlo.all_gather", "all-gather-done", Role::Carries));
  CHECK(isA("stablehlo.subtract", "add", Role::Computes));
  CHECK(isA("stablehlo.reshape", "copy", Role::Computes));
  CHECK(isA("stablehlo.tanh", "add", Role::Part));
  CHECK(isA("stablehlo.dot_general", "convert", Role::Carries));
  CHECK(isA("stablehlo.dot_general", "transpose", Role::Carries));
  CHECK(isA("stablehlo.dot_general", "reduce", Role::Part));
  CHECK(isA("stablehlo.select_and_scatter", "scatter", Role::Part));
  CHECK(!replaces(Kind("stablehlo.dot_general"), Kind("reduce")));
  CHECK(replaces(Kind("stablehlo.reduce"), Kind("dot")));
  CHECK(replaces(Kind("stablehlo.tanh"), Kind("add")));
}
