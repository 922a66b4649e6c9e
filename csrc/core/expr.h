// Evaluates the manifest's integer expressions.
#pragma once

#include <cstdint>
#include <span>

#include "hal/manifest.h"

namespace butter {

/// Throws ShapeError on overflow, division by zero or a malformed expression.
int64_t evaluate(Expr expr, std::span<const uint32_t> dims, uint32_t warp);

}  // namespace butter
