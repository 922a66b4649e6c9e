// Three step blocks: the host writes one while the device may still read the two before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hal/device.h"

namespace butter {

inline constexpr uint32_t kRing = 3;

class StepRing {
 public:
  StepRing(Device& device, uint32_t max_rows);

  /// Header words, then token ids; the slot must be free.
  void write(uint32_t slot, std::span<const uint32_t> words, std::span<const int32_t> tokens);
  /// The token that the device wrote to the slot.
  int32_t out_token(uint32_t slot) const;

  const std::vector<Slice>& slots() const { return slots_; }

 private:
  std::vector<Slice> slots_;
};

}  // namespace butter
