#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "bind/bind.h"
#include "core/error.h"

namespace nb = nanobind;

namespace butter {
namespace {

[[noreturn]] void fail(const KernelInfo& info, const ConstInfo& constant, nb::handle value) {
  throw Error(Code::kShape, std::string(info.symbol),
              concat("constant '", constant.name, "' is not a ", dtype_name(constant.dtype),
                     ": got ", nb::cast<std::string>(nb::repr(value))));
}

uint32_t bits(const KernelInfo& info, const ConstInfo& constant, nb::handle value) {
  if (constant.dtype == DType::kF32) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      fail(info, constant, value);
    }
    return std::bit_cast<uint32_t>(float(number));
  }
  const bool is_signed = constant.dtype == DType::kI32;
  const int64_t low = is_signed ? std::numeric_limits<int32_t>::min() : 0;
  const int64_t high = is_signed ? std::numeric_limits<int32_t>::max()
                                 : int64_t{std::numeric_limits<uint32_t>::max()};
  PyObject* index = PyNumber_Index(value.ptr());
  int overflow = 0;
  const long long number = index ? PyLong_AsLongLongAndOverflow(index, &overflow) : 0;
  Py_XDECREF(index);
  PyErr_Clear();
  if (!index || overflow != 0 || number < low || number > high) fail(info, constant, value);
  return uint32_t(number);
}

}  // namespace

DType parse_dtype(const std::string& name) {
  std::string legal;
  for (size_t i = 0; i < std::size(kDTypeNames); ++i) {
    if (kDTypeNames[i] == name) return DType(i);
    legal += concat(i ? ", " : "", kDTypeNames[i]);
  }
  throw Error(Code::kConfig, "dtype",
              concat("unknown dtype: got '", name, "', need one of ", legal));
}

std::vector<uint32_t> constant_bits(const KernelInfo& info, const nb::sequence& values) {
  std::vector<uint32_t> out;
  for (const nb::handle value : values) {
    // A surplus constant is refused by the dispatch check, which names both counts.
    out.push_back(out.size() < info.consts.size() ? bits(info, info.consts[out.size()], value) : 0);
  }
  return out;
}

}  // namespace butter
