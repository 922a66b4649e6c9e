// Three slots of step blocks: the host writes one while the device may still read the two before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hal/device.h"

namespace butter {

inline constexpr uint32_t kRing = 3;

class StepRing {
 public:
  StepRing(Device& device, uint32_t blocks, uint32_t max_rows);

  /// The header words of all blocks, and the token ids of all blocks, each as many as its rows;
  /// the slot must be free.
  void write(uint32_t slot, std::span<const uint32_t> words, std::span<const int32_t> tokens);
  /// The token that the device wrote to a block of the slot.
  int32_t out_token(uint32_t slot, uint32_t block) const;

  /// The blocks of the first slot, then those of the second …
  const std::vector<Slice>& all() const { return all_; }

 private:
  std::byte* at(uint32_t slot, uint32_t block) const;

  uint32_t blocks_;
  std::vector<Slice> all_;
};

}  // namespace butter
