#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>

#include "bind/bind.h"
#include "core/error.h"
#include "core/floats.h"
#include "core/heap.h"
#include "core/rope_tables.h"
#include "hal/buffer.h"
#include "io/mapping.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace butter {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

std::optional<size_t> first_not_finite(const Memory& memory, const std::string& dtype,
                                       size_t offset, size_t nbytes) {
  return find_not_finite({{host_range(memory, offset, nbytes), nbytes}, parse_dtype(dtype)});
}

/// The floats of a buffer that nobody else writes meanwhile.
float* floats(const Memory& memory, size_t offset, size_t count) {
  std::byte* at = host_range(memory, offset, count * sizeof(float));
  if (!memory.writable() || offset % sizeof(float) != 0) {
    throw Error(Code::kShape, "buffer", "need aligned memory that may be written.");
  }
  return reinterpret_cast<float*>(at);
}

StoredFloats stored(const Mapping& file, size_t offset, size_t nbytes, const std::string& dtype) {
  return {std::as_bytes(file.range(offset, nbytes)), parse_dtype(dtype)};
}

void read_floats(const Mapping& file, size_t from, size_t nbytes, const std::string& dtype,
                 const Memory& memory, size_t offset) {
  const StoredFloats values = stored(file, from, nbytes, dtype);
  widen(values, floats(memory, offset, nbytes / dtype_bytes(values.dtype)));
}

using Range = std::tuple<std::shared_ptr<Mapping>, size_t, size_t, std::string>;

bool follow(const Range& scales, const Range& biases, float factor) {
  const auto as_floats = [](const Range& r) {
    return stored(*std::get<0>(r), std::get<1>(r), std::get<2>(r), std::get<3>(r));
  };
  return biases_follow(as_floats(scales), as_floats(biases), factor);
}

void rope_tables(const std::vector<float>& inv_freq, float factor, size_t begin, size_t end,
                 const Memory& cos, const Memory& sin) {
  if (begin > end) {
    throw Error(Code::kShape, "rope", concat("got positions ", begin, " to ", end));
  }
  const size_t row = inv_freq.size(), at = begin * row * sizeof(float), count = (end - begin) * row;
  fill_rope_tables(inv_freq, factor, begin, end, floats(cos, at, count), floats(sin, at, count));
}

}  // namespace

void bind_loading(nb::module_& m) {
  m.def("first_not_finite", &first_not_finite, "buffer"_a, "dtype"_a, "offset"_a, "nbytes"_a,
        Release(),
        "Index of the first value that is infinite or not a number; None if all are finite.");
  m.def("read_floats", &read_floats, "mapping"_a, "offset"_a, "nbytes"_a, "dtype"_a, "buffer"_a,
        "buffer_offset"_a, Release(), "Values of a file into a buffer, as f32.");
  m.def("biases_follow", &follow, "scales"_a, "biases"_a, "factor"_a, Release(),
        "Whether each bias is its scale times a power of two, in f16. Ranges of files: (mapping, "
        "offset, nbytes, dtype).");
  m.def(
      "rope_tables", &rope_tables, "inv_freq"_a, "factor"_a, "begin"_a, "end"_a, "cos"_a, "sin"_a,
      Release(),
      "Fill rows begin to end of two buffers with cos and sin [positions, len(inv_freq)] in f32.");
  m.def("trim_heap", &trim_heap, Release(),
        "Give free pages of the C library's heap back to the system.");
}

}  // namespace butter
