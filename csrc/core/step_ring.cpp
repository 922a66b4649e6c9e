#include "core/step_ring.h"

#include <cstring>

#include "core/error.h"
#include "step_fields.h"

namespace butter {
namespace {

constexpr size_t kHeaderBytes = step::kHeaderWords * sizeof(uint32_t);
constexpr size_t kAlign = 256;  // no two blocks share a cache line

}  // namespace

StepRing::StepRing(Device& device, uint32_t blocks, uint32_t max_rows) : blocks_(blocks) {
  const size_t used = kHeaderBytes + max_rows * sizeof(int32_t);
  const size_t stride = (used + kAlign - 1) / kAlign * kAlign;
  const Buffer memory = device.allocate(stride * blocks * kRing);
  if (!memory->host()) {
    throw Error(Code::kDevice, "step", "the device gave step blocks that the host cannot write.");
  }
  for (uint32_t i = 0; i < kRing * blocks; ++i) all_.push_back({memory, i * stride, used});
}

std::byte* StepRing::at(uint32_t slot, uint32_t block) const {
  const Slice& slice = all_[slot * blocks_ + block];
  return slice.buffer->host() + slice.offset;
}

void StepRing::write(uint32_t slot, std::span<const uint32_t> words,
                     std::span<const int32_t> tokens) {
  for (uint32_t block = 0; block < blocks_; ++block) {
    const auto header = words.subspan(block * step::kHeaderWords, step::kHeaderWords);
    std::memcpy(at(slot, block), header.data(), kHeaderBytes);
    if (tokens.empty()) continue;
    const auto own = tokens.first(header[step::kRows]);
    tokens = tokens.subspan(own.size());
    if (!own.empty()) std::memcpy(at(slot, block) + kHeaderBytes, own.data(), own.size_bytes());
  }
}

int32_t StepRing::out_token(uint32_t slot, uint32_t block) const {
  int32_t token;
  std::memcpy(&token, at(slot, block) + step::kOutToken * sizeof(uint32_t), sizeof token);
  return token;
}

}  // namespace butter
