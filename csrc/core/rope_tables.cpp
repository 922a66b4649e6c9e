#include "core/rope_tables.h"

#include <cmath>

namespace butter {

void fill_rope_tables(std::span<const float> inv_freq, float factor, size_t begin, size_t end,
                      float* cos, float* sin) {
  for (size_t position = begin; position < end; ++position) {
    for (const float frequency : inv_freq) {
      const double angle = float(position) * frequency;
      *cos++ = float(std::cos(angle)) * factor;
      *sin++ = float(std::sin(angle)) * factor;
    }
  }
}

}  // namespace butter
