// GGUF: typed metadata, a list of tensors, then the aligned data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/file_tensor.h"

namespace butter {

enum class GgufKind : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// Exactly one of the three views is used, by kind. All point into the file.
struct GgufArray {
  GgufKind kind = GgufKind::kU8;
  uint64_t count = 0;
  std::span<const uint8_t> numbers;  // unaligned, little-endian; bools are 0 or 1
  std::vector<std::string_view> strings;
  std::vector<GgufArray> arrays;
};

/// Strings may hold any bytes: some vocabularies have pieces that are not UTF-8.
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

struct Gguf {
  uint32_t version = 0;
  std::vector<std::pair<std::string_view, GgufValue>> metadata;
  std::vector<FileTensor> tensors;  // as listed in the file; shapes outer to inner
};

/// Parses and validates a whole file held in memory; the result points into it. Throws
/// Error(kFile) if malformed, Error(kUnsupported) for a version, byte order or tensor type that we
/// do not read.
Gguf parse_gguf(std::span<const uint8_t> file, const std::string& source);

}  // namespace butter
