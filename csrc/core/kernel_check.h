// Finds kernels by symbol and checks a dispatch against the manifest before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hal/commands.h"
#include "hal/manifest.h"

namespace butter {

/// Throws KernelError with the nearest names.
const KernelInfo& find_kernel(std::string_view symbol);

/// What is bound to one parameter. Equal resources may overlap; unequal ones never do.
struct BoundTensor {
  const void* resource;
  size_t offset;
  size_t bytes;
  std::optional<DType> dtype;  // unset where the caller does not know it
  bool writable;
};

/// Throws ShapeError with the actual values if counts, dtypes, sizes, constraints or aliasing
/// are wrong, else returns the grid.
Grid check_dispatch(const KernelInfo& info, std::span<const BoundTensor> tensors, size_t consts,
                    std::span<const uint32_t> dims, uint32_t warp);

/// The grid at these dims; throws ShapeError where a device could not run it.
Grid evaluate_grid(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t warp);

}  // namespace butter
