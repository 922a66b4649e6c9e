// Kernels of the chosen instruction set, by symbol and constants.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "cpu/isa.h"
#include "hal/commands.h"

namespace butter::cpu {

class CpuPipeline : public Pipeline {
 public:
  CpuPipeline(const KernelInfo& info, CpuKernel fn, std::vector<uint32_t> consts)
      : Pipeline(info), fn(fn), consts(std::move(consts)) {}

  const CpuKernel fn;
  const std::vector<uint32_t> consts;  // in manifest order
};

/// Safe to share between threads; entries live as long as the cache.
class PsoCache {
 public:
  explicit PsoCache(Isa isa) : isa_(std::move(isa)) {}

  /// Throws KernelError if the build has no code for this kernel and instruction set.
  const CpuPipeline& get(const KernelInfo& info, std::span<const uint32_t> consts);

 private:
  struct Key {
    const KernelInfo* info;
    std::span<const uint32_t> consts;  // of the pipeline, or of a caller during a look-up
    bool operator==(const Key& other) const;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };

  std::unique_ptr<CpuPipeline> build(const KernelInfo& info,
                                     std::span<const uint32_t> consts) const;

  const Isa isa_;
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<CpuPipeline>, Hash> pipelines_;
};

}  // namespace butter::cpu
