// How the CPU back end calls a generated kernel.
#pragma once

#include <cstdint>
#include <span>

namespace butter::cpu {

struct KernelArgs {
  void* const* buffers;     // tensor parameters in manifest order, then the step block if used
  const uint32_t* scalars;  // bit patterns: consts, then dims, both in manifest order
  uint32_t grid[3];
};

/// Runs the groups [begin, end) of the linear grid; x is the fastest axis.
using CpuKernel = void (*)(const KernelArgs& args, uint32_t begin, uint32_t end);

struct KernelEntry {
  const char* symbol;
  CpuKernel fn;
};

// One table per instruction set, sorted by symbol; table.cpp is compiled once for each.
extern const std::span<const KernelEntry> table_base;
extern const std::span<const KernelEntry> table_v3;
extern const std::span<const KernelEntry> table_v4;
extern const std::span<const KernelEntry> table_v4_bf16;  // only what differs from v4
extern const std::span<const KernelEntry> table_neon;
extern const std::span<const KernelEntry> table_dotprod;

}  // namespace butter::cpu
