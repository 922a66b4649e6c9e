#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <tuple>

#include "bind/bind.h"
#include "core/error.h"
#include "core/kernel_check.h"
#include "core/open_device.h"
#include "core/run_kernel.h"
#include "cpu/topology.h"
#include "io/mapping.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace butter {
namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;
using Range = std::tuple<Buffer, size_t, size_t>;

Slice to_slice(const Range& range) {
  const auto& [buffer, offset, bytes] = range;
  return {buffer, offset, bytes};
}

void write(const Memory& memory, nb::handle data, size_t offset) {
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  try {
    if (!memory.writable()) {
      throw Error(Code::kShape, "buffer", "these pages of a file are read-only.");
    }
    std::byte* to = host_range(memory, offset, size_t(view.len));
    if (view.len != 0) std::memcpy(to, view.buf, size_t(view.len));
  } catch (...) {
    PyBuffer_Release(&view);
    throw;
  }
  PyBuffer_Release(&view);
}

nb::bytes read(const Memory& memory, size_t offset, std::optional<size_t> bytes) {
  const size_t count = bytes.value_or(offset <= memory.size() ? memory.size() - offset : 0);
  return nb::bytes(host_range(memory, offset, count), count);
}

/// bf16 has no numpy type without ml_dtypes, so its bits come as u16.
nb::dlpack::dtype numpy_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return nb::dtype<float>();
    case DType::kF16:
      return {uint8_t(nb::dlpack::dtype_code::Float), 16, 1};
    case DType::kI8:
      return nb::dtype<int8_t>();
    case DType::kU8:
      return nb::dtype<uint8_t>();
    case DType::kI16:
      return nb::dtype<int16_t>();
    case DType::kBF16:
    case DType::kU16:
      return nb::dtype<uint16_t>();
    case DType::kI32:
      return nb::dtype<int32_t>();
    case DType::kU32:
      break;
  }
  return nb::dtype<uint32_t>();
}

nb::object array(const Buffer& memory, const std::string& dtype_text,
                 const std::vector<size_t>& shape, size_t offset) {
  const DType dtype = parse_dtype(dtype_text);
  size_t bytes = dtype_bytes(dtype);
  for (const size_t n : shape) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) bytes = SIZE_MAX;
  }
  std::byte* at = host_range(*memory, offset, bytes);
  if (reinterpret_cast<uintptr_t>(at) % dtype_bytes(dtype) != 0) {
    throw Error(Code::kShape, "buffer",
                concat("misaligned array: got byte offset ", offset, ", need a multiple of ",
                       dtype_bytes(dtype)));
  }
  const nb::object owner = nb::cast(memory);
  const auto type = numpy_dtype(dtype);
  if (memory->writable()) {
    return nb::cast(nb::ndarray<nb::numpy>(at, shape.size(), shape.data(), owner, nullptr, type));
  }
  return nb::cast(
      nb::ndarray<nb::numpy, nb::ro>(at, shape.size(), shape.data(), owner, nullptr, type));
}

void run(Device& device, std::string_view symbol, const std::vector<Range>& buffers,
         const nb::sequence& consts, const std::vector<uint32_t>& dims,
         const std::optional<Range>& step) {
  const KernelInfo& info = find_kernel(symbol);
  const std::vector<uint32_t> scalars = constant_bits(info, consts);
  std::vector<Slice> slices;
  for (const Range& range : buffers) slices.push_back(to_slice(range));
  const std::optional<Slice> block = step ? std::optional<Slice>(to_slice(*step)) : std::nullopt;
  const nb::gil_scoped_release release;
  run_kernel(device, info, slices, scalars, dims, block);
}

nb::dict describe(const DeviceInfo& info) {
  nb::dict out;
  out["name"] = info.name;
  out["kind"] = info.kind;
  out["isa"] = info.isa;
  out["warp"] = info.warp;
  out["threads"] = info.threads;
  out["memory_bytes"] = info.memory_bytes;
  out["has_bf16_dot"] = info.has_bf16_dot;
  if (!info.warning.empty()) out["warning"] = info.warning;
  return out;
}

std::vector<std::string_view> kernels() {
  std::vector<std::string_view> symbols;
  for (const KernelInfo& info : manifest()) symbols.push_back(info.symbol);
  return symbols;
}

}  // namespace

std::byte* host_range(const Memory& memory, size_t offset, size_t bytes) {
  if (offset > memory.size() || bytes > memory.size() - offset) {
    throw Error(Code::kShape, "buffer",
                concat("range is outside the buffer: got offset ", offset, " and ", bytes,
                       " bytes, need at most ", memory.size()));
  }
  if (!memory.host()) {
    throw Error(Code::kUnsupported, "buffer", "the host cannot address this device's memory.");
  }
  return memory.host() + offset;
}

void bind_device(nb::module_& m) {
  nb::class_<Memory>(m, "Buffer", "Device memory; lives as long as anything refers to it.")
      .def_prop_ro("nbytes", &Memory::size)
      .def_prop_ro("writable", &Memory::writable)
      .def("write", &write, "data"_a, "offset"_a = 0,
           nb::sig("def write(self, data: typing.Any, offset: int = 0) -> None"),
           "Copy a bytes-like object into the buffer.")
      .def("read", &read, "offset"_a = 0, "nbytes"_a = nb::none(),
           "Copy a range out of the buffer; to its end by default.")
      .def("array", &array, "dtype"_a, "shape"_a, "offset"_a = 0,
           nb::sig("def array(self, dtype: str, shape: collections.abc.Sequence[int], "
                   "offset: int = 0) -> typing.Any"),
           "A numpy view without a copy; bf16 comes as uint16.")
      .def("__len__", &Memory::size);

  nb::class_<Device>(m, "Device", "One accelerator. Safe to share between threads.")
      .def_prop_ro("name", [](const Device& d) { return d.info().name; })
      .def_prop_ro("kind", [](const Device& d) { return d.info().kind; })
      .def_prop_ro("isa", [](const Device& d) { return d.info().isa; })
      .def_prop_ro("warp", [](const Device& d) { return d.info().warp; })
      .def_prop_ro("threads", [](const Device& d) { return d.info().threads; })
      .def_prop_ro("memory_bytes", [](const Device& d) { return d.info().memory_bytes; })
      .def_prop_ro("has_bf16_dot", [](const Device& d) { return d.info().has_bf16_dot; })
      .def_prop_ro("info", [](const Device& d) { return describe(d.info()); })
      .def("allocate", &Device::allocate, "nbytes"_a, "sparse"_a = false, Release(),
           "Zeroed memory. Sparse memory takes pages only when they are touched.")
      .def("adopt", &Device::adopt, "mapping"_a, "offset"_a, "nbytes"_a, Release(),
           "A read-only range of a mapped file, in place where the device can.")
      .def(
          "run", &run, "symbol"_a, "buffers"_a, "consts"_a = nb::tuple(), "dims"_a = nb::tuple(),
          "step"_a = nb::none(),
          nb::sig("def run(self, symbol: str, buffers: collections.abc.Sequence[tuple[Buffer, int, "
                  "int]], consts: collections.abc.Sequence[float] = (), dims: "
                  "collections.abc.Sequence[int] = (), step: tuple[Buffer, int, int] | None = None"
                  ") -> None"),
          "Check and run one kernel and wait for it. Ranges are (buffer, offset, nbytes).")
      .def(
          "kernels", [](const Device&) { return kernels(); }, "Symbols of all kernels.")
      .def("inject_fault", &Device::inject_fault, "message"_a,
           "For tests: the next submission fails with a DeviceError instead of running.")
      .def("synchronize", &Device::synchronize, Release(), "Wait for all submitted work.")
      .def("__repr__", [](const Device& d) {
        return concat("<butter.Device ", d.info().kind, " '", d.info().name, "' ", d.info().isa,
                      ", ", d.info().threads, " threads>");
      });

  m.def("open_device", &open_device, "name"_a = "auto", "threads"_a = 0,
        "affinity"_a = std::vector<int>(), Release(),
        "Open metal, cuda, cuda:N or cpu; auto takes the first that this machine has.");
  m.def("cgroup_quota", &cpu::cgroup_quota, "root"_a = "",
        "Cores' worth of time that the control groups grant; 0 without a quota.");
  m.def("save_devices", &save_devices, Release(),
        "Write to disk now what open devices would leave there at their end.");
}

}  // namespace butter
