// The CPU as a device.
#include "hal/device.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "cpu/commands.h"
#include "cpu/host_memory.h"
#include "cpu/isa.h"
#include "cpu/pool.h"
#include "cpu/pso_cache.h"
#include "cpu/table_encoder.h"
#include "cpu/topology.h"

namespace butter {
namespace cpu {
namespace {

constexpr int kMaxThreads = 1024;

class CpuDevice : public Device {
 public:
  CpuDevice(Isa isa, int threads, std::span<const int> cpus)
      : info_{processor_name(), "cpu", isa.name, isa.warp, uint32_t(threads), physical_memory(),
              !isa.bf16.empty()},
        pipelines_(std::move(isa)),
        pool_(threads, threads > usable_threads(), cpus) {}

  const DeviceInfo& info() const override { return info_; }
  Buffer allocate(size_t bytes, bool sparse) override { return allocate_host(bytes, sparse); }

  /// The pool runs one submission at a time, so all plans may work in the same memory.
  Buffer scratch(size_t bytes) override {
    const std::lock_guard lock(scratch_mutex_);
    Buffer shared = scratch_.lock();
    if (!shared || shared->size() < bytes) {
      shared = allocate_host(bytes);
      scratch_ = shared;
    }
    return shared;
  }

  Buffer adopt(std::shared_ptr<const Mapping> file, size_t offset, size_t bytes) override {
    return adopt_host(std::move(file), offset, bytes);
  }

  const Pipeline& pipeline(const KernelInfo& info, std::span<const uint32_t> consts) override {
    return pipelines_.get(info, consts);
  }

  std::unique_ptr<Commands> begin() override { return std::make_unique<CpuCommands>(pool_, info_); }

  std::unique_ptr<Encoder> prepare(const Plan& plan, const PlanMemory& memory,
                                   DispatchMode mode) override {
    return std::make_unique<TableEncoder>(*this, pool_, plan, memory, mode);
  }

  void inject_fault(const std::string& message) override { pool_.inject_fault(message); }
  void synchronize() override { pool_.drain(); }

 private:
  DeviceInfo info_;
  PsoCache pipelines_;
  Pool pool_;
  std::mutex scratch_mutex_;
  std::weak_ptr<Memory> scratch_;  // the largest that is in use
};

/// Refuses CPUs that this process may not use, and fewer than threads.
void check_affinity(int threads, std::span<const int> cpus) {
  const std::vector<int> usable = usable_cpus();
  if (usable.empty()) {
    throw Error(Code::kUnsupported, "cpu",
                "affinity: this system binds no threads to CPUs. Leave it out.");
  }
  std::string legal;
  for (const int cpu : usable) legal += concat(legal.empty() ? "" : ", ", cpu);
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (std::ranges::find(usable, cpus[i]) == usable.end()) {
      throw Error(Code::kConfig, "cpu",
                  concat("affinity: got CPU ", cpus[i], ", need some of ", legal,
                         ", which this process may use"));
    }
    if (std::ranges::find(cpus.first(i), cpus[i]) != cpus.first(i).end()) {
      throw Error(Code::kConfig, "cpu",
                  concat("affinity: got CPU ", cpus[i], " twice, need each once"));
    }
  }
  if (size_t(threads) > cpus.size()) {
    throw Error(Code::kConfig, "cpu",
                concat("affinity: got ", cpus.size(), " CPUs for ", threads,
                       " threads, need one for each"));
  }
}

}  // namespace
}  // namespace cpu

std::shared_ptr<Device> open_cpu(int threads, std::span<const int> cpus) {
  if (threads < 0 || threads > cpu::kMaxThreads) {
    throw Error(Code::kConfig, "cpu",
                concat("threads is out of range: got ", threads, ", need 1..", cpu::kMaxThreads,
                       ", or 0 for the physical cores"));
  }
  if (!cpus.empty()) cpu::check_affinity(threads, cpus);
  const int usual = cpus.empty() ? cpu::usable_cores() : int(cpus.size());
  return std::make_shared<cpu::CpuDevice>(cpu::choose_isa(), threads > 0 ? threads : usual, cpus);
}

}  // namespace butter
