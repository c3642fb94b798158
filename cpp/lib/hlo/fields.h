// SPDX-License-Identifier: Apache-2.0
//
// Which numbers have the fields of XLA's messages (xla/service/hlo.proto, xla/xla_data.proto)?
#pragma once

namespace hlotag::hlo::fields {

namespace module { // HloModuleProto
inline constexpr int kName = 1, kComputations = 3, kEntryId = 6, kStackFrames = 17, kPayloads = 22;
}
namespace computation { // HloComputationProto
inline constexpr int kName = 1, kInstructions = 2, kId = 5, kRootId = 6, kThread = 8;
}
namespace instruction { // HloInstructionProto
inline constexpr int kName = 1, kOpcode = 2, kShape = 3, kMetadata = 7, kParameterNumber = 9,
                     kTupleIndex = 13, kWindow = 15, kConvolutionDimensions = 16, kChannelId = 26,
                     kTarget = 28, kDotDimensions = 30, kFftLength = 32, kId = 35, kOperandIds = 36,
                     kCalledIds = 38, kBackendConfig = 43, kBatchGroups = 58,
                     kFrontendAttributes = 68;
}
namespace dot { // DotDimensionNumbers
inline constexpr int kLhsContracting = 1;
}
namespace convolution { // ConvolutionDimensionNumbers
inline constexpr int kKernelInput = 3, kKernelOutput = 4, kInputBatch = 7, kInputSpatial = 11,
                     kOutputSpatial = 12;
}
namespace window { // Window, and WindowDimension in it
inline constexpr int kDimensions = 1, kSize = 1, kStride = 2, kPaddingLow = 3, kDilation = 5,
                     kBaseDilation = 6;
}
namespace metadata { // OpMetadata
inline constexpr int kOpName = 2, kFile = 3, kLine = 4, kFrame = 15, kPayload = 20;
}
namespace payload { // MetadataPayload
inline constexpr int kText = 1, kIndex = 2;
}
namespace attributes { // FrontendAttributes
inline constexpr int kMap = 1;
}
namespace entry { // of a map
inline constexpr int kKey = 1, kValue = 2;
}
namespace shape { // ShapeProto
inline constexpr int kElementType = 2, kDimensions = 3, kTupleShapes = 4;
}
namespace frames { // StackFrameIndexProto, and FileLocation and StackFrame in it
inline constexpr int kFileNames = 1, kLocations = 3, kFrames = 4, kFileOfLocation = 1,
                     kLineOfLocation = 3, kLocationOfFrame = 1, kParent = 2;
}

} // namespace hlotag::hlo::fields
