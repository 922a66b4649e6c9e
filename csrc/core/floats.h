// Numbers of weight files.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "hal/manifest.h"

namespace butter {

/// f32, f16 or bf16 as they are stored; the bytes need no alignment. Functions that take another
/// dtype throw ConfigError.
struct StoredFloats {
  std::span<const std::byte> bytes;
  DType dtype;
};

/// Index of the first value that is infinite or not a number.
std::optional<size_t> find_not_finite(const StoredFloats& floats);

/// All values as f32, which is exact. `to` has room for them.
void widen(const StoredFloats& floats, float* to);

/// Whether each bias is its scale times `factor`, a power of two, with all of them rounded to f16.
/// False for different counts.
bool biases_follow(const StoredFloats& scales, const StoredFloats& biases, float factor);

}  // namespace butter
