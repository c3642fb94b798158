// SPDX-License-Identifier: Apache-2.0
// What do the passes do with marks, calls, a loop and a bad value? trial_expected.mlir has the result.
#file = loc("probe.py":3:7)
#caller = loc("probe.py":9:1)
#frame = loc("f"(#file))
#call = loc(callsite(#frame at #caller))
#sine = loc("jit(f)/jvp(\01hlotag#0\01)/sin"(#call))
#cosine = loc("jit(f)/jvp(\01hlotag#0\01)/cos"(#call))
#product = loc("jit(f)/transpose(jvp(\01hlotag#3\01))/mul"(#call))
#loop = loc("jit(f)/\01hlotag#1\01/while"(#file))
#inner = loc("jit(f)/\01hlotag#1\01/while/body/add"(#file))
#called = loc("jit(f)/\01hlotag#1\01/jit(g)"(#file))
#plain = loc("jit(f)/jit(g)"(#file))
#line = loc("jit(f)/stack/tanh"("g"("probe.py":4:1 to :9)))
#lines = loc("jit(f)/stack/abs"("g"("probe.py":4:1 to 5:1)))
#inlined = loc(callsite("jit(f)/\01hlotag#0\01/abs"(#file) at #caller))
#negate = loc(fused<"metadata">["jit(f)/neg"(#file), #sine])
module @jit_f attributes {hlotag.tags = [{entries = {k = "v"}}, {entries = {a = "1", b = "2"}}, {entries = {_scheduling_group_id = "1"}},
                                              {entries = {k = "w"}}]} {
  func.func public @main(%x: tensor<f32> loc("x"), %t: tensor<f32> loc("t")) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.sine %x : tensor<f32> loc(#sine)
    %1 = stablehlo.cosine %x : tensor<f32> loc(#cosine)
    %2 = stablehlo.multiply %t, %1 : tensor<f32> loc(#product)
    %3 = stablehlo.negate %2 : tensor<f32> loc(#negate)
    %4 = stablehlo.while(%c = %3) : tensor<f32>
    cond {
      %10 = stablehlo.compare LT, %c, %x : (tensor<f32>, tensor<f32>) -> tensor<i1> loc(#loop)
      stablehlo.return %10 : tensor<i1> loc(#loop)
    } do {
      %10 = stablehlo.add %c, %x : tensor<f32> loc(#inner)
      stablehlo.return %10 : tensor<f32> loc(#loop)
    } loc(#loop)
    %5 = call @g(%4) : (tensor<f32>) -> tensor<f32> loc(#called)
    %6 = call @g(%5) : (tensor<f32>) -> tensor<f32> loc(#plain)
    %7 = stablehlo.abs %6 {mhlo.frontend_attributes = {k = 3 : i32}} : tensor<f32> loc("unused"(#file))
    %8 = stablehlo.tanh %x : tensor<f32> loc(#line)
    %9 = stablehlo.abs %x : tensor<f32> loc(#lines)
    %10 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<2x3xf32> loc(#inlined)
    return %0, %6 : tensor<f32>, tensor<f32> loc(#file)
  } loc(#file)
  func.func private @g(%x: tensor<f32> loc("\01hlotag#2\01/x")) -> tensor<f32> {
    %0 = stablehlo.tanh %x : tensor<f32> loc("\01hlotag#2\01/tanh"(#call))
    return %0 : tensor<f32> loc(#file)
  } loc(#file)
} loc(#file)
