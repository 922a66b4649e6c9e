#include <exception>
#include <new>

#include "bind/bind.h"
#include "core/error.h"

namespace nb = nanobind;

namespace butter {
namespace {

const char* class_name(Code code) {
  switch (code) {
    case Code::kShape:
      return "ShapeError";
    case Code::kConfig:
      return "ConfigError";
    case Code::kWeight:
      return "WeightError";
    case Code::kUnsupported:
      return "UnsupportedError";
    case Code::kMemory:
      return "OutOfMemory";
    case Code::kDevice:
      return "DeviceError";
    case Code::kKernel:
      return "KernelError";
    case Code::kFile:
      return "FileFormatError";
  }
  return "ButterError";
}

/// Sets the Python error. A failed import leaves its own error, which says what is wrong.
void raise(const char* name, const char* message) {
  PyObject* module = PyImport_ImportModule("butter.errors");
  if (!module) return;
  PyObject* type = PyObject_GetAttrString(module, name);
  Py_DECREF(module);
  if (!type) return;
  PyErr_SetString(type, message);
  Py_DECREF(type);
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      raise(class_name(e.code()), e.what());
    } catch (const std::bad_alloc&) {
      raise("OutOfMemory", "[host] the host is out of memory. Use a smaller model or context.");
    }
  });
}

}  // namespace butter
