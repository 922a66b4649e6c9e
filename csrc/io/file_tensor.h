// What a weight file says about one tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace butter {

struct FileTensor {
  std::string name;
  std::string type;             // as the format spells it: "BF16", "Q4_K"
  std::vector<uint64_t> shape;  // outer to inner
  uint64_t offset = 0;          // from the start of the file
  uint64_t bytes = 0;
};

/// False if a * b does not fit into 63 bits, which is what ptrdiff_t and numpy count with; then
/// *out is unspecified.
inline bool multiply(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out) && *out <= INT64_MAX;
}

/// "[2, 3]"
std::string shape_text(const std::vector<uint64_t>& shape);

}  // namespace butter
