#include "core/step_ring.h"

#include <cstring>

#include "core/error.h"
#include "step_fields.h"

namespace butter {
namespace {

constexpr size_t kHeaderBytes = step::kHeaderWords * sizeof(uint32_t);
constexpr size_t kSlotAlign = 256;  // no two slots share a cache line

}  // namespace

StepRing::StepRing(Device& device, uint32_t max_rows) {
  const size_t used = kHeaderBytes + max_rows * sizeof(int32_t);
  const size_t stride = (used + kSlotAlign - 1) / kSlotAlign * kSlotAlign;
  const Buffer memory = device.allocate(stride * kRing);
  if (!memory->host()) {
    throw Error(Code::kDevice, "step", "the device gave step blocks that the host cannot write.");
  }
  for (uint32_t i = 0; i < kRing; ++i) slots_.push_back({memory, i * stride, used});
}

void StepRing::write(uint32_t slot, std::span<const uint32_t> words,
                     std::span<const int32_t> tokens) {
  std::byte* at = slots_[slot].buffer->host() + slots_[slot].offset;
  std::memcpy(at, words.data(), kHeaderBytes);
  if (!tokens.empty()) std::memcpy(at + kHeaderBytes, tokens.data(), tokens.size_bytes());
}

int32_t StepRing::out_token(uint32_t slot) const {
  const std::byte* at = slots_[slot].buffer->host() + slots_[slot].offset;
  int32_t token;
  std::memcpy(&token, at + step::kOutToken * sizeof(uint32_t), sizeof token);
  return token;
}

}  // namespace butter
