// Which instruction set's kernels this machine runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cpu/kernel_abi.h"

namespace butter::cpu {

struct Isa {
  std::string name;
  uint32_t warp;  // f32 lanes of one vector register
  std::span<const KernelEntry> table;
  std::span<const KernelEntry> bf16 = {};  // kernels that come before those of the table
};

/// The widest set that the processor has, or the one that BUTTER_ISA names.
/// Throws ConfigError if that one is unknown or missing here.
Isa choose_isa();

}  // namespace butter::cpu
