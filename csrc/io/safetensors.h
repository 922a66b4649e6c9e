// safetensors: eight bytes of length, a JSON header, then the tensors without gaps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/file_tensor.h"

namespace butter {

struct Safetensors {
  std::vector<FileTensor> tensors;  // by offset
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Parses and validates a whole file held in memory; `source` names it in messages.
/// Throws Error(kFile) if malformed and Error(kUnsupported) for an unknown dtype.
///
/// Accepted files are those of the reference reader, less what it lets pass without a use:
/// duplicate names, unknown fields, white space before the header, ranks past 32.
Safetensors parse_safetensors(std::span<const uint8_t> file, const std::string& source);

/// weight_map of a `model.safetensors.index.json`: tensor name to shard. A shard is a plain file
/// name, so that an index cannot reach outside its folder. Throws Error(kFile).
std::vector<std::pair<std::string, std::string>> parse_safetensors_index(
    std::span<const uint8_t> file, const std::string& source);

}  // namespace butter
