#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "io/gguf.h"
#include "io/mapping.h"
#include "io/safetensors.h"
#include "io/text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace butter {
namespace {

using MappingRef = std::shared_ptr<const Mapping>;
using Release = nb::call_guard<nb::gil_scoped_release>;

/// Bytes that are not UTF-8 become lone surrogates: encode with "surrogateescape" to get them back.
nb::object to_str(std::string_view text) {
  PyObject* str =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (str == nullptr) nb::raise_python_error();
  return nb::steal(str);
}

/// An array of strings in a file. A vocabulary as Python objects takes five times its bytes, so
/// each is made when it is asked for.
struct Strings {
  MappingRef file;
  std::vector<std::string_view> views;

  nb::object at(size_t i) const {
    if (i >= views.size()) throw nb::index_error();
    return to_str(views[i]);
  }

  nb::list to_list() const {
    nb::list out;
    for (const std::string_view text : views) out.append(to_str(text));
    return out;
  }
};

template <typename T>
nb::object numbers(const GgufArray& array) {
  // The file does not align them; a memoryview wants aligned elements.
  T* copy = new T[array.count];
  const nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  if (array.count != 0) std::memcpy(copy, array.numbers.data(), array.numbers.size());
  return nb::cast(nb::ndarray<nb::memview, T, nb::ndim<1>>(copy, {array.count}, owner));
}

nb::object to_python(GgufArray& array, const MappingRef& file) {
  nb::list out;
  switch (array.kind) {
    case GgufKind::kU8:
      return numbers<uint8_t>(array);
    case GgufKind::kI8:
      return numbers<int8_t>(array);
    case GgufKind::kU16:
      return numbers<uint16_t>(array);
    case GgufKind::kI16:
      return numbers<int16_t>(array);
    case GgufKind::kU32:
      return numbers<uint32_t>(array);
    case GgufKind::kI32:
      return numbers<int32_t>(array);
    case GgufKind::kF32:
      return numbers<float>(array);
    case GgufKind::kBool:
      return numbers<bool>(array);
    case GgufKind::kU64:
      return numbers<uint64_t>(array);
    case GgufKind::kI64:
      return numbers<int64_t>(array);
    case GgufKind::kF64:
      return numbers<double>(array);
    case GgufKind::kString:
      return nb::cast(Strings{file, std::move(array.strings)});
    case GgufKind::kArray:
      for (GgufArray& inner : array.arrays) out.append(to_python(inner, file));
      break;
  }
  return out;
}

nb::object to_python(std::string_view text, const MappingRef&) { return to_str(text); }
nb::object to_python(bool value, const MappingRef&) { return nb::bool_(value); }
nb::object to_python(double value, const MappingRef&) { return nb::float_(value); }
nb::object to_python(int64_t value, const MappingRef&) { return nb::int_(value); }
nb::object to_python(uint64_t value, const MappingRef&) { return nb::int_(value); }

nb::dict to_python(const std::vector<FileTensor>& tensors) {
  nb::dict out;
  for (const FileTensor& t : tensors) {
    nb::list shape;
    for (const uint64_t dim : t.shape) shape.append(dim);
    out[to_str(t.name)] = nb::make_tuple(t.type, nb::tuple(shape), t.offset, t.bytes);
  }
  return out;
}

nb::dict to_python(const std::vector<std::pair<std::string, std::string>>& pairs) {
  nb::dict out;
  for (const auto& [key, value] : pairs) out[to_str(key)] = to_str(value);
  return out;
}

std::span<const uint8_t> all(const Mapping& file) { return {file.data(), file.size()}; }

std::string source(const Mapping& file) { return quoted(file.path(), kPathChars); }

nb::tuple read_safetensors(const std::filesystem::path& path) {
  MappingRef file;
  Safetensors parsed;
  {
    const nb::gil_scoped_release release;
    file = Mapping::open(path.native());
    parsed = parse_safetensors(all(*file), source(*file));
  }
  return nb::make_tuple(file, to_python(parsed.tensors), to_python(parsed.metadata));
}

nb::dict read_safetensors_index(const std::filesystem::path& path) {
  std::vector<std::pair<std::string, std::string>> weight_map;
  {
    const nb::gil_scoped_release release;
    const MappingRef file = Mapping::open(path.native());
    weight_map = parse_safetensors_index(all(*file), source(*file));
  }
  return to_python(weight_map);
}

nb::tuple read_gguf(const std::filesystem::path& path) {
  MappingRef file;
  Gguf parsed;
  {
    const nb::gil_scoped_release release;
    file = Mapping::open(path.native());
    parsed = parse_gguf(all(*file), source(*file));
  }
  nb::dict metadata;
  for (auto& [key, value] : parsed.metadata) {
    metadata[to_str(key)] =
        std::visit([&](auto& v) -> nb::object { return to_python(v, file); }, value);
  }
  return nb::make_tuple(file, to_python(parsed.tensors), metadata);
}

/// To the end of the file if `nbytes` is None.
size_t span_bytes(const Mapping& file, size_t offset, std::optional<size_t> nbytes) {
  return nbytes.value_or(file.size() - std::min(offset, file.size()));
}

}  // namespace

void bind_io(nb::module_& m) {
  nb::class_<Mapping>(m, "Mapping",
                      "A regular file mapped read-only. Never truncate it while mapped.")
      .def(nb::new_([](const std::filesystem::path& path) {
             const nb::gil_scoped_release release;
             return Mapping::open(path.native());
           }),
           "path"_a, "Map a file. Raises FileFormatError if it is missing, empty or not a file.")
      .def_prop_ro("path", [](const Mapping& file) { return std::filesystem::path(file.path()); })
      .def_prop_ro("nbytes", &Mapping::size)
      .def(
          "view",
          [](nb::handle self, size_t offset, std::optional<size_t> nbytes) {
            const Mapping& file = nb::cast<const Mapping&>(self);
            const auto bytes = file.range(offset, span_bytes(file, offset, nbytes));
            return nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()},
                                                                      self);
          },
          "offset"_a = 0, "nbytes"_a = nb::none(),
          "A read-only array over the file's own pages; keeps the mapping alive.")
      .def(
          "read",
          [](const Mapping& file, size_t offset, size_t nbytes) {
            const auto bytes = file.range(offset, nbytes);
            return nb::bytes(bytes.data(), bytes.size());
          },
          "offset"_a, "nbytes"_a, "A copy of a range.")
      .def(
          "release",
          [](const Mapping& file, size_t offset, std::optional<size_t> nbytes) {
            file.release(offset, span_bytes(file, offset, nbytes));
          },
          "offset"_a = 0, "nbytes"_a = nb::none(), Release(),
          "Drop whole pages of the range from memory; a later access reads the file again.")
      .def(
          "prefetch",
          [](const Mapping& file, size_t offset, std::optional<size_t> nbytes) {
            file.prefetch(offset, span_bytes(file, offset, nbytes));
          },
          "offset"_a = 0, "nbytes"_a = nb::none(), Release(),
          "Start reading the range in the background.")
      .def("__repr__", [](const Mapping& file) {
        return "<butter.Mapping " + quoted(file.path(), kPathChars) + ">";
      });

  nb::class_<Strings>(m, "Strings", "An array of strings in a GGUF file, read when asked for.")
      .def("__len__", [](const Strings& s) { return s.views.size(); })
      .def("__getitem__", &Strings::at, "index"_a)
      .def("tolist", &Strings::to_list);

  m.def("read_safetensors", &read_safetensors, "path"_a,
        nb::sig("def read_safetensors(path: str | os.PathLike) -> tuple[Mapping, "
                "dict[str, tuple[str, tuple[int, ...], int, int]], dict[str, str]]"),
        "Map and validate a safetensors file: (mapping, {name: (dtype, shape, offset, nbytes)}, "
        "metadata). Offsets count from the start of the file and need not be aligned.");
  m.def(
      "read_safetensors_index", &read_safetensors_index, "path"_a,
      "The weight_map of a model.safetensors.index.json: {name: shard}, shards plain file names.");
  m.def("read_gguf", &read_gguf, "path"_a,
        nb::sig("def read_gguf(path: str | os.PathLike) -> tuple[Mapping, "
                "dict[str, tuple[str, tuple[int, ...], int, int]], dict[str, Any]]"),
        "Map and validate a GGUF file: (mapping, {name: (type, shape, offset, nbytes)}, metadata). "
        "Shapes are outer to inner. Arrays of numbers are memoryviews, arrays of strings Strings; "
        "bytes that are not UTF-8 become surrogates (errors='surrogateescape').");
}

}  // namespace butter
