// One kernel, now: for tests and for the repacking of weights at load.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hal/device.h"

namespace butter {

/// Checks, dispatches and waits. `step` is a step block for kernels that use one.
/// Throws ShapeError, KernelError, or what the device stored.
void run_kernel(Device& device, const KernelInfo& info, std::span<const Slice> slices,
                std::span<const uint32_t> consts, std::span<const uint32_t> dims,
                const std::optional<Slice>& step);

}  // namespace butter
