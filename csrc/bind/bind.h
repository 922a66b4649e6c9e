// What the binding files share.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hal/buffer.h"
#include "hal/manifest.h"

namespace butter {

void bind_errors(nanobind::module_& m);
void bind_io(nanobind::module_& m);
void bind_device(nanobind::module_& m);
void bind_program(nanobind::module_& m);
void bind_decode(nanobind::module_& m);
void bind_loading(nanobind::module_& m);

/// "f32" … Throws ConfigError with the legal names.
DType parse_dtype(const std::string& name);

/// The host's view of [offset, offset + bytes). Throws ShapeError, or UnsupportedError where the
/// host cannot address the memory.
std::byte* host_range(const Memory& memory, size_t offset, size_t bytes);

/// Bit patterns of Python numbers, by the kernel's declared dtypes. Throws ShapeError.
std::vector<uint32_t> constant_bits(const KernelInfo& info, const nanobind::sequence& values);

}  // namespace butter
