// Eager dispatch: every kernel looked up, checked and encoded again at every step, on any device.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/kernel_check.h"
#include "core/step_ring.h"
#include "hal/device.h"

namespace butter {

class EagerEncoder : public Encoder {
 public:
  /// The arguments outlive the encoder.
  EagerEncoder(Device& device, const Plan& plan, const PlanMemory& memory);

  std::shared_ptr<Completion> submit(uint32_t slot) override;

  /// Runs the step one dispatch at a time and waits for each; device time in ns by dispatch.
  std::vector<uint64_t> profile(uint32_t slot);

 private:
  void encode(Commands& commands, const Dispatch& dispatch, const Slice& step);

  Device& device_;
  const Plan& plan_;
  const PlanMemory& memory_;
  std::array<std::unique_ptr<Commands>, kRing> commands_;
  // Scratch, kept to spare allocations.
  std::vector<Slice> slices_;
  std::vector<BoundTensor> bound_;
  std::vector<uint32_t> scalars_;
};

/// Where a binding lies, given the pool and the dispatch's step block.
Slice resolve(const Plan& plan, const PlanMemory& memory, const Slice& step,
              const Binding& binding);

}  // namespace butter
