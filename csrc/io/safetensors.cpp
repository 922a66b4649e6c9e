#include "io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "io/json_reader.h"
#include "io/text.h"

namespace butter {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr size_t kMaxRank = 32;                    // numpy's

struct StoredType {
  std::string_view name;
  uint64_t bytes;
};

constexpr StoredType kDTypes[] = {{"F64", 8},     {"F32", 4},     {"F16", 2}, {"BF16", 2},
                                  {"I64", 8},     {"I32", 4},     {"I16", 2}, {"I8", 1},
                                  {"U8", 1},      {"U16", 2},     {"U32", 4}, {"U64", 8},
                                  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw Error(Code::kFile, "safetensors", concat(source, ": ", what));
}

uint64_t dtype_bytes(const FileTensor& t, const std::string& source) {
  std::string names;
  for (const StoredType& dtype : kDTypes) {
    if (dtype.name == t.type) return dtype.bytes;
    names += concat(names.empty() ? "" : ", ", dtype.name);
  }
  throw Error(Code::kUnsupported, "safetensors",
              concat(source, ": tensor ", quoted(t.name), ": dtype ", quoted(t.type),
                     " is not supported; supported: ", names));
}

/// {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}; offsets count from the data.
FileTensor read_tensor(JsonReader& json, const std::string& name) {
  FileTensor t;
  t.name = name;
  bool has_dtype = false;
  bool has_shape = false;
  std::vector<uint64_t> offsets;
  json.object([&](const std::string& field) {
    if (field == "dtype") {
      t.type = json.string();
      has_dtype = true;
    } else if (field == "shape") {
      json.array([&] {
        if (t.shape.size() == kMaxRank) {
          json.fail(concat("shape has more than ", kMaxRank, " dims"));
        }
        t.shape.push_back(json.unsigned_integer());
      });
      has_shape = true;
    } else if (field == "data_offsets") {
      json.array([&] {
        if (offsets.size() == 2) json.fail("data_offsets has more than 2 numbers");
        offsets.push_back(json.unsigned_integer());
      });
    } else {
      json.fail(concat("tensor ", quoted(name), " has the unknown field ", quoted(field),
                       "; known: dtype, shape, data_offsets"));
    }
  });
  if (!has_dtype || !has_shape || offsets.size() != 2) {
    json.fail(concat("tensor ", quoted(name), " needs dtype, shape and two data_offsets"));
  }
  if (offsets[1] < offsets[0]) {
    json.fail(concat("tensor ", quoted(name), ": data_offsets end before they begin: got [",
                     offsets[0], ", ", offsets[1], "]"));
  }
  t.offset = offsets[0];
  t.bytes = offsets[1] - offsets[0];
  return t;
}

Safetensors read_header(std::string_view header, const std::string& source) {
  Safetensors out;
  JsonReader json(header, "safetensors", source);
  json.object([&](const std::string& name) {
    if (name == "__metadata__") {
      json.object([&](const std::string& key) { out.metadata.emplace_back(key, json.string()); });
    } else {
      out.tensors.push_back(read_tensor(json, name));
    }
  });
  json.finish();
  return out;
}

void check_size(const FileTensor& t, const std::string& source) {
  uint64_t bytes = dtype_bytes(t, source);
  bool has_zero = false;
  for (const uint64_t dim : t.shape) {
    has_zero |= dim == 0;
    // An empty tensor must fit too without its zeros: who strides over it multiplies the rest.
    if (!multiply(bytes, std::max<uint64_t>(dim, 1), &bytes)) {
      fail(source, concat("tensor ", quoted(t.name), ": shape ", shape_text(t.shape),
                          " does not fit into 63 bits"));
    }
  }
  if (has_zero) bytes = 0;
  if (bytes != t.bytes) {
    fail(source, concat("tensor ", quoted(t.name), ": ", t.type, shape_text(t.shape), " takes ",
                        bytes, " bytes, its data_offsets span ", t.bytes));
  }
}

/// The tensors must tile the data: no gap, no overlap, nothing left over.
void check_layout(std::vector<FileTensor>& tensors, uint64_t data_bytes,
                  const std::string& source) {
  const auto key = [](const FileTensor& t) { return std::pair(t.offset, t.bytes); };
  std::ranges::sort(tensors, {}, key);
  uint64_t next = 0;
  for (const FileTensor& t : tensors) {
    if (t.offset != next) {
      fail(source, concat("tensor ", quoted(t.name), " begins at ", t.offset, ", need ", next, ": ",
                          t.offset < next ? "tensors overlap" : "there is a gap"));
    }
    if (t.bytes > data_bytes - next) {
      fail(source,
           concat("tensor ", quoted(t.name), " needs ", t.bytes, " bytes at ", t.offset,
                  ", the file holds ", data_bytes - next, ". It is truncated: download it again"));
    }
    next += t.bytes;
  }
  if (next != data_bytes) {
    fail(source, concat("tensors cover ", next, " of ", data_bytes, " data bytes"));
  }
}

}  // namespace

Safetensors parse_safetensors(std::span<const uint8_t> file, const std::string& source) {
  uint64_t header_bytes = 0;
  if (file.size() < sizeof(header_bytes)) {
    fail(source, concat("too short: got ", file.size(), " bytes, need at least 8"));
  }
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  const std::span<const uint8_t> rest = file.subspan(sizeof(header_bytes));
  if (header_bytes > kMaxHeaderBytes) {
    fail(source, concat("header length ", header_bytes, " is over the limit of ", kMaxHeaderBytes,
                        ". This is not a safetensors file"));
  }
  if (header_bytes > rest.size()) {
    fail(source, concat("header length ", header_bytes, " is more than the ", rest.size(),
                        " bytes that follow. The file is truncated: download it again"));
  }
  const std::string_view header(reinterpret_cast<const char*>(rest.data()), header_bytes);
  if (!header.starts_with('{')) fail(source, "the header does not begin with '{'");

  Safetensors out = read_header(header, source);
  for (const FileTensor& t : out.tensors) check_size(t, source);
  check_layout(out.tensors, rest.size() - header_bytes, source);
  for (FileTensor& t : out.tensors) t.offset += sizeof(header_bytes) + header_bytes;
  return out;
}

std::vector<std::pair<std::string, std::string>> parse_safetensors_index(
    std::span<const uint8_t> file, const std::string& source) {
  if (file.size() > kMaxHeaderBytes) {
    fail(source, concat("index of ", file.size(), " bytes is over the limit of ", kMaxHeaderBytes));
  }
  std::vector<std::pair<std::string, std::string>> weight_map;
  bool found = false;
  JsonReader json({reinterpret_cast<const char*>(file.data()), file.size()}, "safetensors", source);
  json.object([&](const std::string& field) {
    if (field != "weight_map") return json.skip();  // "metadata" holds only sizes
    found = true;
    json.object([&](const std::string& name) {
      std::string shard = json.string();
      if (shard.empty() || shard == "." || shard == ".." ||
          shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
        json.fail(concat("tensor ", quoted(name), ": shard ", quoted(shard),
                         " is not a plain file name"));
      }
      weight_map.emplace_back(name, std::move(shard));
    });
  });
  json.finish();
  if (!found) fail(source, "the index has no weight_map");
  return weight_map;
}

}  // namespace butter
