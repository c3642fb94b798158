// SPDX-License-Identifier: Apache-2.0
//
// All of the IR layer, for passes.
#pragma once

#include "hlotag/ir/attributes.h"
#include "hlotag/ir/builder.h"
#include "hlotag/ir/diagnostics.h"
#include "hlotag/ir/flat_map.h"
#include "hlotag/ir/keys.h"
#include "hlotag/ir/location.h"
#include "hlotag/ir/op_ids.h"
#include "hlotag/ir/op_list.h"
#include "hlotag/ir/operation.h"
#include "hlotag/ir/rewriter.h"
#include "hlotag/ir/tag_writer.h"
#include "hlotag/ir/walk.h"
