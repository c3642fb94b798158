// SPDX-License-Identifier: Apache-2.0
//
// What does a pass include to read and change IR? This header includes the whole room.
#pragma once

#include "hlotag/ir/attributes.h"
#include "hlotag/ir/diagnostics.h"
#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/keys.h"
#include "hlotag/ir/location.h"
#include "hlotag/ir/op_ids.h"
#include "hlotag/ir/op_list.h"
#include "hlotag/ir/operation.h"
#include "hlotag/ir/rewriter.h"
#include "hlotag/ir/tag_writer.h"
