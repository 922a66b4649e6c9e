#include "io/file_tensor.h"

namespace butter {

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string out = "[";
  for (const uint64_t dim : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(dim);
  }
  return out + "]";
}

}  // namespace butter
