// Compiled pipelines by kernel, form and function constants.
#pragma once

#import <Metal/Metal.h>

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "hal/commands.h"
#include "metal/library.h"
#include "metal/ref.h"

namespace butter::metal {

class MetalPipeline : public Pipeline {
 public:
  MetalPipeline(const KernelInfo& info, Ref<id<MTLComputePipelineState>> state,
                std::vector<uint32_t> consts)
      : Pipeline(info), state(std::move(state)), consts(std::move(consts)) {}

  MTLSize threads() const { return MTLSizeMake(info.group, 1, 1); }

  const Ref<id<MTLComputePipelineState>> state;
  const std::vector<uint32_t> consts;  // in manifest order
};

/// Safe to share between threads; entries live as long as the cache.
class PsoCache {
 public:
  explicit PsoCache(id<MTLDevice> device)
      : device_(Ref<id<MTLDevice>>::keep(device)), library_(device) {}

  /// In table form the pipeline reads its arguments from table `first` on. Throws KernelError if
  /// the kernel is missing, does not compile or does not fit the GPU.
  const MetalPipeline& get(const KernelInfo& info, std::span<const uint32_t> consts,
                           Form form = Form::kPlain, uint32_t first = 0);

  Library& library() { return library_; }

 private:
  struct Key {
    const KernelInfo* info;
    Form form;
    uint32_t first;
    std::span<const uint32_t> consts;  // of the pipeline, or of a caller during a look-up
    bool operator==(const Key& other) const;
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };

  static Ref<MTLFunctionConstantValues*> constant_values(const Key& key);
  Ref<id<MTLComputePipelineState>> compile(const Key& key);
  std::unique_ptr<MetalPipeline> build(const Key& key);

  const Ref<id<MTLDevice>> device_;
  Library library_;
  std::shared_mutex mutex_;
  std::unordered_map<Key, std::unique_ptr<MetalPipeline>, Hash> pipelines_;
};

}  // namespace butter::metal
