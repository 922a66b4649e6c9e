#include "io/gguf.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "core/error.h"
#include "io/byte_cursor.h"
#include "io/gguf_types.h"
#include "io/text.h"

namespace butter {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

// A vocabulary of 262k tokens with merges and scores takes about 15 MB.
constexpr size_t kMaxHeaderBytes = size_t{128} << 20;
constexpr size_t kMaxNameBytes = 65535;  // the format's limit for keys
constexpr int kMaxArrayDepth = 4;
constexpr uint32_t kMaxDims = 4;
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint64_t kMinPairBytes = 8 + 4 + 1;        // empty key, kind, u8
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;  // empty name, no dims, type, offset

/// Bytes per element; for strings and arrays the least that one takes in the file.
uint64_t kind_bytes(GgufKind kind) {
  switch (kind) {
    case GgufKind::kU8:
    case GgufKind::kI8:
    case GgufKind::kBool:
      return 1;
    case GgufKind::kU16:
    case GgufKind::kI16:
      return 2;
    case GgufKind::kU32:
    case GgufKind::kI32:
    case GgufKind::kF32:
      return 4;
    case GgufKind::kString:
    case GgufKind::kU64:
    case GgufKind::kI64:
    case GgufKind::kF64:
      return 8;
    case GgufKind::kArray:
      return 12;
  }
  return 0;  // not a kind
}

class Parser {
 public:
  Parser(std::span<const uint8_t> file, const std::string& source)
      : file_(file), source_(source), in_(file, kMaxHeaderBytes, "gguf", source) {}

  Gguf run() {
    read_version();
    const uint64_t tensors = in_.count(kMinTensorBytes, "tensor count");
    // Checked again after the metadata: only what is left then can hold tensors.
    const uint64_t pairs = in_.count(kMinPairBytes, "metadata count");
    for (uint64_t i = 0; i < pairs; ++i) read_pair();
    in_.check_count(tensors, kMinTensorBytes, "tensor count");
    out_.tensors.reserve(tensors);
    for (uint64_t i = 0; i < tensors; ++i) read_tensor();
    place_tensors();
    return std::move(out_);
  }

 private:
  [[noreturn]] void unsupported(const std::string& what) const {
    throw Error(Code::kUnsupported, "gguf", concat(source_, ": ", what));
  }

  void read_version() {
    const auto magic = in_.take(4, "magic");
    const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (found != "GGUF") in_.fail(concat("magic is ", quoted(found), ", need \"GGUF\""));
    out_.version = in_.read<uint32_t>("version");
    if (out_.version != 0 && (out_.version & 0xFFFF) == 0) {
      unsupported("the file is big-endian, need little-endian. Convert it on a machine like this");
    }
    if (out_.version != 2 && out_.version != 3) {
      unsupported(concat("version ", out_.version, " is not supported; supported: 2, 3"));
    }
  }

  std::string_view read_name(const char* what) {
    const std::string_view name = in_.string(what);
    if (name.size() > kMaxNameBytes) {
      in_.fail(concat(what, " of ", name.size(), " bytes is over the limit of ", kMaxNameBytes));
    }
    if (!is_utf8(name)) in_.fail(concat(what, " ", quoted(name), " is not valid UTF-8"));
    return name;
  }

  void read_pair() {
    const std::string_view key = read_name("metadata key");
    if (!keys_.insert(key).second) in_.fail("duplicate metadata key " + quoted(key));
    const auto kind = in_.read<GgufKind>("metadata kind");
    GgufValue value = read_value(kind);
    if (key == "general.alignment") {
      const uint64_t* bytes = std::get_if<uint64_t>(&value);
      if (kind != GgufKind::kU32 || !std::has_single_bit(*bytes)) {
        in_.fail("general.alignment must be a u32 and a power of two");
      }
      alignment_ = *bytes;
    }
    out_.metadata.emplace_back(key, std::move(value));
  }

  bool read_bool() {
    const auto byte = in_.read<uint8_t>("bool");
    if (byte > 1) in_.fail(concat("bool is ", int{byte}, ", need 0 or 1"));
    return byte == 1;
  }

  GgufValue read_value(GgufKind kind) {
    switch (kind) {
      case GgufKind::kU8:
        return uint64_t{in_.read<uint8_t>("u8")};
      case GgufKind::kI8:
        return int64_t{in_.read<int8_t>("i8")};
      case GgufKind::kU16:
        return uint64_t{in_.read<uint16_t>("u16")};
      case GgufKind::kI16:
        return int64_t{in_.read<int16_t>("i16")};
      case GgufKind::kU32:
        return uint64_t{in_.read<uint32_t>("u32")};
      case GgufKind::kI32:
        return int64_t{in_.read<int32_t>("i32")};
      case GgufKind::kF32:
        return double{in_.read<float>("f32")};
      case GgufKind::kBool:
        return read_bool();
      case GgufKind::kString:
        return in_.string("string");
      case GgufKind::kArray:
        return read_array(1);
      case GgufKind::kU64:
        return in_.read<uint64_t>("u64");
      case GgufKind::kI64:
        return in_.read<int64_t>("i64");
      case GgufKind::kF64:
        return in_.read<double>("f64");
    }
    fail_kind(kind);
  }

  [[noreturn]] void fail_kind(GgufKind kind) const {
    in_.fail(concat("metadata kind is ", static_cast<uint32_t>(kind), ", need 0 to 12"));
  }

  GgufArray read_array(int depth) {
    if (depth > kMaxArrayDepth) {
      in_.fail(concat("arrays are nested deeper than the limit of ", kMaxArrayDepth));
    }
    GgufArray array;
    array.kind = in_.read<GgufKind>("array kind");
    const uint64_t bytes = kind_bytes(array.kind);
    if (bytes == 0) fail_kind(array.kind);
    array.count = in_.count(bytes, "array length");
    if (array.kind == GgufKind::kString) {
      array.strings.reserve(array.count);
      for (uint64_t i = 0; i < array.count; ++i) array.strings.push_back(in_.string("string"));
    } else if (array.kind == GgufKind::kArray) {
      array.arrays.reserve(array.count);
      for (uint64_t i = 0; i < array.count; ++i) array.arrays.push_back(read_array(depth + 1));
    } else if (array.kind == GgufKind::kBool) {
      array.numbers = in_.take(array.count, "array of bool");
      if (std::ranges::any_of(array.numbers, [](uint8_t byte) { return byte > 1; })) {
        in_.fail("an array of bool holds a byte that is not 0 or 1");
      }
    } else {
      array.numbers = in_.take(array.count * bytes, "array");
    }
    return array;
  }

  void read_tensor() {
    FileTensor t;
    t.name = read_name("tensor name");
    if (!names_.insert(t.name).second) in_.fail("duplicate tensor " + quoted(t.name));
    const auto dims = in_.read<uint32_t>("dim count");
    if (dims > kMaxDims) {
      in_.fail(concat("tensor ", quoted(t.name), " has ", dims, " dims, need at most ", kMaxDims));
    }
    for (uint32_t i = 0; i < dims; ++i) t.shape.push_back(in_.read<uint64_t>("dim"));
    const uint64_t row = dims == 0 ? 1 : t.shape[0];
    std::ranges::reverse(t.shape);  // the file lists the innermost first

    const auto id = in_.read<uint32_t>("tensor type");
    const GgufType* type = find_gguf_type(id);
    if (type == nullptr || !type->is_supported()) {
      const std::string name = type ? std::string(type->name) : concat("type ", id);
      unsupported(concat("tensor ", quoted(t.name), ": ", name,
                         " is not supported; supported: ", supported_gguf_types()));
    }
    t.type = type->name;
    t.offset = in_.read<uint64_t>("tensor offset");
    t.bytes = tensor_bytes(t, *type, row);
    out_.tensors.push_back(std::move(t));
  }

  uint64_t tensor_bytes(const FileTensor& t, const GgufType& type, uint64_t row) const {
    const std::string text = concat("tensor ", quoted(t.name), ": ", t.type, shape_text(t.shape));
    if (row % type.block != 0) {
      in_.fail(concat(text, ": rows must be a multiple of ", type.block, " elements"));
    }
    uint64_t elements = 1;
    uint64_t bytes = 0;
    for (const uint64_t dim : t.shape) {
      if (dim == 0) in_.fail(text + ": a dim is 0");
      if (!multiply(elements, dim, &elements)) in_.fail(text + " does not fit into 63 bits");
    }
    if (!multiply(elements / type.block, type.bytes, &bytes)) {
      in_.fail(text + " does not fit into 63 bits");
    }
    return bytes;
  }

  /// Offsets count from the first aligned byte after the list; gaps are allowed.
  void place_tensors() {
    if (out_.tensors.empty()) return;
    const uint64_t start = (in_.pos() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes = start < file_.size() ? file_.size() - start : 0;
    std::vector<const FileTensor*> by_offset;
    for (FileTensor& t : out_.tensors) {
      if (t.offset % alignment_ != 0) {
        in_.fail(concat("tensor ", quoted(t.name), ": offset ", t.offset,
                        " is not a multiple of the alignment ", alignment_));
      }
      if (t.offset > data_bytes || t.bytes > data_bytes - t.offset) {
        in_.fail(concat("tensor ", quoted(t.name), " needs ", t.bytes, " bytes at ", t.offset,
                        ", the file holds ", data_bytes, ". It is truncated: download it again"));
      }
      t.offset += start;
      by_offset.push_back(&t);
    }
    std::ranges::sort(by_offset, {}, &FileTensor::offset);
    for (size_t i = 1; i < by_offset.size(); ++i) {
      const FileTensor& before = *by_offset[i - 1];
      if (by_offset[i]->offset - before.offset < before.bytes) {
        in_.fail(concat("tensors ", quoted(before.name), " and ", quoted(by_offset[i]->name),
                        " overlap"));
      }
    }
  }

  std::span<const uint8_t> file_;
  std::string source_;
  ByteCursor in_;
  Gguf out_;
  uint64_t alignment_ = kDefaultAlignment;
  std::unordered_set<std::string_view> keys_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Gguf parse_gguf(std::span<const uint8_t> file, const std::string& source) {
  return Parser(file, source).run();
}

}  // namespace butter
