// Angles of rotary embeddings.
#pragma once

#include <cstddef>
#include <span>

namespace butter {

/// cos and sin [end - begin, inv_freq.size()] of the positions from `begin` on, times `factor`. The
/// angle is rounded to f32, as the references do; its rounding at large positions is part of the
/// model.
void fill_rope_tables(std::span<const float> inv_freq, float factor, size_t begin, size_t end,
                      float* cos, float* sin);

}  // namespace butter
