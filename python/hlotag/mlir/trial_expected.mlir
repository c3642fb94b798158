// probe.py:3:7: error: 'stablehlo.abs' key 'k' in 'mhlo.frontend_attributes' has the value 3 : i32, which XLA drops: it must be a string or a bool. Correct it where it is written, or remove it by hlotag-strip{keys=k}
// probe.py:3:7: warning: 'stablehlo.abs' key 'k' in 'mhlo.frontend_attributes' has the value 3 : i32, which XLA drops: it must be a string or a bool. Correct it where it is written, or remove it by hlotag-strip{keys=k}
// probe.py 3
// f/hlotag#0 forward probe.py 3
// f/hlotag#0 forward probe.py 3
// f/hlotag#3 backward probe.py 3
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
// hlotag#0  probe.py 3
// probe.py 3
// probe.py 3
// f/hlotag#2  probe.py 3
// probe.py 3
// func.func 0 () () 0
// stablehlo.sine 1 (None,) () 1
// stablehlo.cosine 2 (None,) () 2
// stablehlo.multiply 3 (None, 2) () 3
// stablehlo.negate 2 (3,) () 4
// stablehlo.while 4 (4,) () 5
// stablehlo.compare 4 (None, None) () 6
// stablehlo.return 0 (6,) () 7
// stablehlo.add 4 (None, None) () 8
// stablehlo.return 0 (8,) () 9
// func.call 4 (5,) () 10
// func.call 0 (21,) () 12
// stablehlo.abs 5 (18,) () 14
// stablehlo.tanh 0 (None,) () 15
// stablehlo.abs 0 (None,) () 16
// stablehlo.broadcast_in_dim 2 (None,) (2, 3) 17
// func.return 0 (1, 18) () 18
// func.func 0 () () 19
// stablehlo.tanh 6 (21,) () 13
// func.return 0 (18,) () 20
// func.func 0 () () 21
// stablehlo.tanh 7 (5,) () 11
// func.return 0 (21,) () 22
module @jit_f {
  func.func public @main(%arg0: tensor<f32> loc("x"), %arg1: tensor<f32> loc("t")) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.sine %arg0 {mhlo.frontend_attributes = {k = "v", r = "1"}} : tensor<f32> loc("jit(f)/jvp()/sin"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    %1 = stablehlo.cosine %arg0 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc("jit(f)/jvp()/cos"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    %2 = stablehlo.multiply %arg1, %1 {mhlo.frontend_attributes = {k = "w"}} : tensor<f32> loc("jit(f)/transpose(jvp())/mul"(callsite("f"("probe.py":3:7) at "probe.py":9:1)))
    %3 = stablehlo.negate %2 {mhlo.frontend_attributes = {k = "v"}} : tensor<f32> loc(fused<"metadata">["jit(f)/neg"("probe.py":3:7), "jit(f)/jvp()/sin"(callsite("f"("probe.py":3:7) at "probe.py":9:1))])
    %4 = stablehlo.while(%iterArg = %3) : tensor<f32> attributes {mhlo.frontend_attributes = {a = "1", b = "2"}}
    cond {
      %11 = stablehlo.compare LT, %iterArg, %arg0 {mhlo.frontend_attributes = {a = "1", b = "2"}} : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("jit(f)/while"("probe.py":3:7))
      stablehlo.return %11 : tensor<i1> loc("jit(f)/while"("probe.py":3:7))
    } do {
      %11 = stablehlo.add %iterArg, %arg0 {mhlo.frontend_attributes = {a = "1", b = "2"}} : tensor<f32> loc("jit(f)/while/body/add"("probe.py":3:7))
      stablehlo.return %11 : tensor<f32> loc("jit(f)/while"("probe.py":3:7))
    } loc("jit(f)/while"("probe.py":3:7))
    %5 = call @g_0(%4) {mhlo.frontend_attributes = {a = "1", b = "2"}} : (tensor<f32>) -> tensor<f32> loc("jit(f)/jit(g)"("probe.py":3:7))
    %6 = call @g(%5) : (tensor<f32>) -> tensor<f32> loc("jit(f)/jit(g)"("probe.py":3:7))
    %7 = stablehlo.abs %6 {mhlo.frontend_attributes = {k = 3 : i32}} : tensor<f32> loc("unused"("probe.py":3:7))
    %8 = stablehlo.tanh %arg0 : tensor<f32> loc("jit(f)/stack/tanh"("g"("probe.py":4:1 to :9)))
    %9 = stablehlo.abs %arg0 : tensor<f32> loc("jit(f)/stack/abs"("g"("probe.py":4:1 to 5:1)))
    %10 = stablehlo.broadcast_in_dim %arg0, dims = [] {mhlo.frontend_attributes = {k = "v"}} : (tensor<f32>) -> tensor<2x3xf32> loc(callsite("jit(f)/abs"("probe.py":3:7) at "probe.py":9:1))
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
