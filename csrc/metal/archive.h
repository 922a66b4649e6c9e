// Compiled pipelines of one MSL text, kept on disk between runs.
#pragma once

#import <Metal/Metal.h>

#include <mutex>
#include <string>
#include <string_view>

#include "metal/ref.h"

namespace butter::metal {

/// Safe to share between threads. A missing, stale or unwritable archive only costs time.
class Archive {
 public:
  /// Named after the text and the GPU, in the folder of BUTTER_METAL_CACHE or the user's caches;
  /// without such a folder nothing is kept.
  Archive(id<MTLDevice> device, std::string_view name, std::string_view text);
  /// Saves what was added.
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// The pipeline if the archive holds it, else nil; owned by the caller.
  Ref<id<MTLComputePipelineState>> find(MTLComputePipelineDescriptor* descriptor);
  void add(MTLComputePipelineDescriptor* descriptor);

 private:
  const Ref<id<MTLDevice>> device_;
  const std::string path_;
  std::mutex mutex_;
  Ref<id<MTLBinaryArchive>> archive_;  // nil if nothing is kept
  bool has_changed_ = false;
};

}  // namespace butter::metal
