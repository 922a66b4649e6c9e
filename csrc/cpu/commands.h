// One command buffer on the CPU: collects calls, then hands them to the pool.
#pragma once

#include <memory>
#include <vector>

#include "cpu/pool.h"
#include "cpu/submission.h"
#include "hal/device.h"

namespace butter::cpu {

class CpuCommands : public Commands {
 public:
  CpuCommands(Pool& pool, const DeviceInfo& info);

  void dispatch(const Pipeline& pipeline, const Launch& launch) override;
  void barrier() override;
  std::shared_ptr<Completion> submit() override;

 private:
  Pool& pool_;
  const DeviceInfo& info_;
  std::shared_ptr<Submission> work_;
  uint32_t phase_begin_ = 0;
  // The tasks' arguments: offsets into these until submit() turns them into pointers.
  std::vector<void*> buffers_;
  std::vector<uint32_t> scalars_;
  std::vector<std::pair<size_t, size_t>> offsets_;
  bool submitted_ = false;
};

/// The address of a slice.
void* address(const Slice& slice);

}  // namespace butter::cpu
