// The one interface every back end implements.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hal/buffer.h"
#include "hal/commands.h"
#include "hal/program.h"

namespace butter {

class Mapping;

struct DeviceInfo {
  std::string name;
  std::string kind;  // "cpu", "metal", "cuda"
  std::string isa;   // instruction set or GPU family
  uint32_t warp;     // lanes that run in lockstep
  uint32_t threads;  // worker threads of a CPU, else 1
  size_t memory_bytes;
  bool has_bf16_dot = false;  // products of bf16 pairs are one instruction of a CPU
  std::string warning = {};   // what its user should know, if anything
};

/// One accelerator. Safe to share between threads; a Commands or an Encoder is not.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  /// Contents are zero. Sparse memory fills up slowly, as a cache does: it should take small pages
  /// when they are touched. Throws OutOfMemory.
  virtual Buffer allocate(size_t bytes, bool sparse = false) = 0;

  /// Memory that no step reads before it has written it. A device whose steps never overlap may
  /// give the same to several. Throws OutOfMemory.
  virtual Buffer scratch(size_t bytes) { return allocate(bytes); }

  /// Uses mapped pages in place where the device can; keeps the mapping alive. Read-only.
  virtual Buffer adopt(std::shared_ptr<const Mapping> file, size_t offset, size_t bytes) = 0;

  /// Built on first use, then cached by kernel and constants. Throws KernelError.
  virtual const Pipeline& pipeline(const KernelInfo& info, std::span<const uint32_t> consts) = 0;

  /// Starts one command buffer. Nothing runs before submit().
  virtual std::unique_ptr<Commands> begin() = 0;

  /// Prepares a plan for replay; both arguments outlive the encoder. Eager needs none.
  virtual std::unique_ptr<Encoder> prepare(const Plan& plan, const PlanMemory& memory,
                                           DispatchMode mode) = 0;

  /// For tests: the next submission fails with this message instead of running.
  virtual void inject_fault(const std::string& message) = 0;

  /// Waits for all submitted work. Errors stay with the submissions that stored them.
  virtual void synchronize() = 0;

  /// Writes to disk now what it would leave there at its end, such as compiled code. Waits for no
  /// other thread, and never throws.
  virtual void save() {}
};

/// Null if this build or this machine has no such device; `why` then says which.
std::shared_ptr<Device> open_metal(std::string* why);
std::shared_ptr<Device> open_cuda(int ordinal, std::string* why);
/// 0 threads means the physical cores this process may use, or all `cpus`. If there are any, each
/// thread is bound to one. Throws ConfigError, and Unsupported where that cannot be.
std::shared_ptr<Device> open_cpu(int threads, std::span<const int> cpus = {});

}  // namespace butter
