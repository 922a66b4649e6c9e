// Compiled kernels: kernels.metallib beside the extension, else the MSL text shipped there.
#pragma once

#import <Metal/Metal.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "hal/manifest.h"
#include "metal/archive.h"
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

  /// A metallib, or one compiled text.
  struct Unit {
    Ref<id<MTLLibrary>> library;
    std::unique_ptr<Archive> archive;  // of a text
    std::string failure;               // why the text does not compile
  };

  /// Without a metallib this compiles the kernel's text at its first use. Throws KernelError.
  Unit& unit(const KernelInfo& info, Form form);

  /// Throws KernelError if the unit lacks the kernel.
  static Ref<id<MTLFunction>> function(const Unit& unit, const KernelInfo& info, Form form,
                                       MTLFunctionConstantValues* constants);

  /// Why no compiled pipeline can be kept on disk, if one would have to be; else nothing.
  const std::string& cache_problem() const { return cache_.problem; }

  /// Writes the archives that have changed, but not those that another thread uses.
  void save();

 private:
  Unit compile(const std::string& name);

  const Ref<id<MTLDevice>> device_;
  const std::string folder_;
  Unit all_;  // the metallib, if there is one
  ArchiveFolder cache_;
  std::mutex mutex_;
  std::map<std::string, Unit> units_;  // by name of the text
};

}  // namespace butter::metal
