// Work on its way to a device: one command buffer, and the handle to wait on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "hal/buffer.h"
#include "hal/manifest.h"

namespace butter {

/// A kernel specialized by its constants. Owned by the device's cache, which never drops one.
class Pipeline {
 public:
  explicit Pipeline(const KernelInfo& info) : info(info) {}
  virtual ~Pipeline() = default;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  const KernelInfo& info;
};

using Grid = std::array<uint32_t, 3>;

/// What one dispatch is given. The spans need to live only for the call that takes it.
struct Launch {
  std::span<const Slice> slices;      // by parameter
  std::span<const uint32_t> scalars;  // bit patterns: consts, then dims
  Grid grid{};
  Slice step;  // the step block, for kernels that use it
};

/// One submission.
class Completion {
 public:
  virtual ~Completion() = default;
  virtual bool done() const = 0;
  /// Blocks until the work has ended; throws the first error it stored, at every call.
  virtual void wait() = 0;
  /// Time the device spent on it, once done.
  virtual uint64_t device_ns() const = 0;
  /// Of that, how long one of the device's threads waited for others on average; 0 on a GPU.
  virtual uint64_t barrier_ns() const { return 0; }
  /// Phases that several threads shared, so that one may have waited for another; 0 on a GPU.
  virtual uint64_t barriers() const { return 0; }
};

/// One command buffer. Not to be shared between threads.
class Commands {
 public:
  virtual ~Commands() = default;
  /// Dispatches since the last barrier may overlap. The caller has checked the launch.
  virtual void dispatch(const Pipeline& pipeline, const Launch& launch) = 0;
  virtual void barrier() = 0;
  /// Nothing runs before this. The object is empty afterwards and may be used again
  /// as soon as the work has ended.
  virtual std::shared_ptr<Completion> submit() = 0;
};

}  // namespace butter
