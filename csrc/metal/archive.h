// Compiled pipelines of one MSL text, kept on disk between runs.
#pragma once

#import <Metal/Metal.h>

#include <mutex>
#include <string>
#include <string_view>

#include "metal/ref.h"

namespace butter::metal {

/// Where archives lie: BUTTER_METAL_CACHE, or the user's caches.
struct ArchiveFolder {
  std::string path;     // empty if nothing is kept
  std::string problem;  // why a folder that was wanted cannot be used

  /// Makes the folder if it is not there.
  static ArchiveFolder find();
};

/// Safe to share between threads. A missing, stale or unwritable archive only costs time.
class Archive {
 public:
  /// Named after the text and the GPU. Without a folder nothing is kept.
  Archive(id<MTLDevice> device, const ArchiveFolder& folder, std::string_view name,
          std::string_view text);
  /// Saves what was added.
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// The pipeline if the archive holds it, else nil; owned by the caller.
  Ref<id<MTLComputePipelineState>> find(MTLComputePipelineDescriptor* descriptor);
  void add(MTLComputePipelineDescriptor* descriptor);

  /// Writes what was added, unless another thread uses the archive.
  void save();

 private:
  void write();

  const Ref<id<MTLDevice>> device_;
  const std::string path_;
  const int process_;       // a child of fork() writes nothing
  const std::string part_;  // made early: a destructor must not run out of memory
  std::mutex mutex_;
  Ref<id<MTLBinaryArchive>> archive_;  // nil if nothing is kept
  bool has_changed_ = false;
};

}  // namespace butter::metal
