// Compiled kernels: kernels.metallib beside the extension, else the MSL text shipped there.
#pragma once

#import <Metal/Metal.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "hal/manifest.h"
#include "metal/ref.h"

namespace butter::metal {

/// How a kernel takes its arguments.
enum class Form {
  kPlain,  // one buffer each
  kTable,  // all pointers from one argument buffer at index 0
};

/// Safe to share between threads.
class Library {
 public:
  /// Throws KernelError if kernels.metallib is there but broken, or if nothing is there at all.
  explicit Library(id<MTLDevice> device);

  /// Without a metallib this compiles the kernel's source file at its first use. Throws
  /// KernelError.
  Ref<id<MTLFunction>> function(const KernelInfo& info, Form form,
                                MTLFunctionConstantValues* constants);

 private:
  id<MTLLibrary> unit(const KernelInfo& info, Form form);
  Ref<id<MTLLibrary>> compile(const std::string& path);

  const Ref<id<MTLDevice>> device_;
  const std::string folder_;
  Ref<id<MTLLibrary>> all_;  // the metallib, if there is one
  std::mutex mutex_;
  std::map<std::string, Ref<id<MTLLibrary>>> units_;  // by path of the MSL text
};

}  // namespace butter::metal
