// The tensor types of GGUF files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace butter {

struct GgufType {
  uint32_t id;
  std::string_view name;
  uint32_t block;  // elements per block; 0 for a type that we only know by name
  uint32_t bytes;  // per block

  bool is_supported() const { return block != 0; }
};

/// Null for an id that no GGUF version has used.
const GgufType* find_gguf_type(uint32_t id);

/// "F32, F16, …"
std::string supported_gguf_types();

}  // namespace butter
