// SPDX-License-Identifier: Apache-2.0
// Which operations compute the operands of others, through calls and regions, and which have equal values.
// RUN: %python %S/Inputs/number.py %s | FileCheck %s

// CHECK: 0 = func.func(){{$}}
// CHECK-NEXT: 1 = stablehlo.sine(_){{$}}
// CHECK-NEXT: 2 = stablehlo.sine(_) is 1{{$}}
// CHECK-NEXT: 3 = stablehlo.sine(_) is 1{{$}}
// CHECK-NEXT: 4 = stablehlo.sine(_){{$}}
// CHECK-NEXT: 5 = stablehlo.iota(){{$}}
// CHECK-NEXT: 6 = stablehlo.iota() is 5{{$}}
// CHECK-NEXT: 7 = stablehlo.compare(1, 4){{$}}
// CHECK-NEXT: 8 = stablehlo.compare(1, 4){{$}}
// CHECK-NEXT: 9 = stablehlo.select(7, 1, 5){{$}}
// CHECK-NEXT: 10 = stablehlo.select(7, 3, 6) is 9{{$}}
// CHECK-NEXT: 11 = stablehlo.select(8, 3, 6){{$}}
// CHECK-NEXT: 12 = func.call(9){{$}}
// CHECK-NEXT: 13 = stablehlo.case(_){{$}}
// CHECK-NEXT: 14 = stablehlo.cosine(34){{$}}
// CHECK-NEXT: 15 = stablehlo.return(14){{$}}
// CHECK-NEXT: 16 = func.call(_){{$}}
// CHECK-NEXT: 17 = stablehlo.optimization_barrier(_, _){{$}}
// CHECK-NEXT: 18 = stablehlo.abs(17){{$}}
// CHECK-NEXT: 19 = stablehlo.abs(17){{$}}
// CHECK-NEXT: 20 = stablehlo.abs(17) is 19{{$}}
// CHECK-NEXT: 21 = stablehlo.custom_call(_){{$}}
// CHECK-NEXT: 22 = stablehlo.custom_call(_){{$}}
// CHECK-NEXT: 23 = stablehlo.case(_){{$}}
// CHECK-NEXT: 24 = stablehlo.return(_){{$}}
// CHECK-NEXT: 25 = stablehlo.case(_){{$}}
// CHECK-NEXT: 26 = stablehlo.return(_){{$}}
// CHECK-NEXT: 27 = stablehlo.convert(_){{$}}
// CHECK-NEXT: 28 = stablehlo.convert(_){{$}}
// CHECK-NEXT: 29 = func.return(34, 13){{$}}
// CHECK-NEXT: 30 = func.func(){{$}}
// CHECK-NEXT: 31 = stablehlo.sine(_) is 1{{$}}
// CHECK-NEXT: 32 = func.return(31){{$}}
// CHECK-NEXT: 33 = func.func(){{$}}
// CHECK-NEXT: 34 = stablehlo.negate(9){{$}}
// CHECK-NEXT: 35 = func.return(34){{$}}
// CHECK-NEXT: results: 34 13{{$}}

func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.sine %x : tensor<4xf32>
  // Entries and records count for nothing.
  %1 = stablehlo.sine %x {mhlo.frontend_attributes = {k = "v"}} : tensor<4xf32>
  %2 = stablehlo.sine %x {hlotag.origins = {k = {pass = "p"}}} : tensor<4xf32>
  %3 = stablehlo.sine %y : tensor<4xf32>
  // Other attributes do.
  %4 = stablehlo.iota dim = 0 : tensor<4xf32>
  %5 = stablehlo.iota dim = 0 : tensor<4xf32>
  %6 = stablehlo.compare LT, %0, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %7 = stablehlo.compare GT, %0, %3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %8 = stablehlo.select %6, %0, %4 : tensor<4xi1>, tensor<4xf32>
  %9 = stablehlo.select %6, %2, %5 : tensor<4xi1>, tensor<4xf32>
  %10 = stablehlo.select %7, %2, %5 : tensor<4xi1>, tensor<4xf32>
  %11 = func.call @f(%8) : (tensor<4xf32>) -> tensor<4xf32>
  %12 = "stablehlo.case"(%i) ({
    %13 = stablehlo.cosine %11 : tensor<4xf32>
    stablehlo.return %13 : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  // A function's operations are those of its only call; results of one operation differ.
  %14 = func.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %15:2 = stablehlo.optimization_barrier %x, %y : tensor<4xf32>, tensor<4xf32>
  %16 = stablehlo.abs %15#0 : tensor<4xf32>
  %17 = stablehlo.abs %15#1 : tensor<4xf32>
  %18 = stablehlo.abs %15#1 : tensor<4xf32>
  // Custom calls may differ, and so may what has regions.
  %19 = stablehlo.custom_call @c(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %20 = stablehlo.custom_call @c(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %21 = "stablehlo.case"(%i) ({ stablehlo.return %x : tensor<4xf32> }) : (tensor<i32>) -> tensor<4xf32>
  %22 = "stablehlo.case"(%i) ({ stablehlo.return %y : tensor<4xf32> }) : (tensor<i32>) -> tensor<4xf32>
  // The type of the result counts.
  %23 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf16>
  %24 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  return %11, %12 : tensor<4xf32>, tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
