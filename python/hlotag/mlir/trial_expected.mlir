// probe.py:3:7: warning
// probe.py 3
// f/hlotag#0 forward probe.py 3
// f/hlotag#0 forward probe.py 3
// f/hlotag#0 backward probe.py 3
// probe.py 3
// hlotag#1  probe.py 3
// hlotag#1  probe.py 3
// hlotag#1  probe.py 3
// hlotag#1  probe.py 3
// hlotag#1  probe.py 3
// hlotag#1  probe.py 3
// probe.py 3
// probe.py 3
// stack  probe.py 4
// stack  probe.py 4
// probe.py 3
// probe.py 3
// f/hlotag#2  probe.py 3
// probe.py 3
module @jit_f {
  func.func public @main(%arg0: tensor<f32> loc("x"), %arg1: tensor<f32> loc("t")) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/jvp()/sin"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    %1 = stablehlo.cosine %arg0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/jvp()/cos"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    %2 = stablehlo.multiply %arg1, %1 {mhlo.frontend_attributes = {k = "w"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    %3 = stablehlo.negate %2 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc(fused<"metadata">["jit(f)/neg"("probe.py":3:7), "jit(f)/jvp()/sin"(callsite("f"("probe.py":3:7) at "probe.py":9:1))])
    %4 = stablehlo.while(%iterArg = %3) : tensor<f32> attributes {mhlo.frontend_attributes = {a = "1", b = "2"}}
    cond {
      %10 = stablehlo.compare LT, %iterArg, %arg0 {mhlo.frontend_attributes = {a = "1", b = "2"}} : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("jit(f)/while"("probe.py":3:7))
      stablehlo.return %10 : tensor<i1> loc("jit(f)/while"("probe.py":3:7))
    } do {
      %10 = stablehlo.add %iterArg, %arg0 {mhlo.frontend_attributes = {a = "1", b = "2"}} : tensor<f32> loc("jit(f)/while/body/add"("probe.py":3:7))
      stablehlo.return %10 : tensor<f32> loc("jit(f)/while"("probe.py":3:7))
    } loc("jit(f)/while"("probe.py":3:7))
    %5 = call @g_0(%4) {mhlo.frontend_attributes = {a = "1", b = "2"}} : (tensor<f32>) -> tensor<f32> loc("jit(f)/jit(g)"("probe.py":3:7))
    %6 = call @g(%5) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jit(g)"("probe.py":3:7))
    %7 = stablehlo.abs %6 {mhlo.frontend_attributes = {k = 3 : i32}} : tensor<f32> loc("unused"("probe.py":3:7))
    %8 = stablehlo.tanh %arg0 : tensor<f32> loc("jit(f)/stack/tanh"("g"("probe.py":4:1 to :9)))
    %9 = stablehlo.abs %arg0 : tensor<f32> loc("jit(f)/stack/abs"("g"("probe.py":4:1 to 5:1)))
    return %0, %6 : tensor<f32>, tensor<f32> loc("probe.py":3:7)
  } loc("probe.py":3:7)
  func.func private @g(%arg0: tensor<f32> loc("x")) -> tensor<f32> {
    %0 = stablehlo.tanh %arg0 {mhlo.frontend_attributes = {_scheduling_group_id = "1"}} : tensor<f32> loc("tanh"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    return %0 : tensor<f32> loc("probe.py":3:7)
  } loc("probe.py":3:7)
  func.func private @g_0(%arg0: tensor<f32> loc("x")) -> tensor<f32> {
    %0 = stablehlo.tanh %arg0 {mhlo.frontend_attributes = {_scheduling_group_id = "1", a = "1", b = "2"}} : tensor<f32> loc("tanh"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    return %0 : tensor<f32> loc("probe.py":3:7)
  } loc("probe.py":3:7)
} loc("probe.py":3:7)
