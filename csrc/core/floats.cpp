#include "core/floats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace butter {
namespace {

constexpr size_t kBlock = 4096;  // values between two looks at what was found

/// The exponent bits are all set in infinities and NaNs.
template <typename Bits>
std::optional<size_t> find_exponent(std::span<const std::byte> bytes, Bits mask) {
  const size_t count = bytes.size() / sizeof(Bits);
  Bits block[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    std::memcpy(block, bytes.data() + at * sizeof(Bits), n * sizeof(Bits));
    bool found = false;
    for (size_t i = 0; i < n; ++i) found |= (block[i] & mask) == mask;
    if (!found) continue;
    return at + size_t(std::ranges::find_if(block, block + n,
                                            [&](Bits b) { return (b & mask) == mask; }) -
                       block);
  }
  return std::nullopt;
}

template <typename Bits>
Bits load(std::span<const std::byte> bytes, size_t i) {
  Bits bits;
  std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

float from_bf16(uint16_t half) { return std::bit_cast<float>(uint32_t(half) << 16); }

float from_f16(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1F;
  const uint32_t mantissa = half & 0x3FF;
  if (exponent == 0) {  // a multiple of 2^-24
    return std::bit_cast<float>(std::bit_cast<uint32_t>(float(mantissa) * 0x1p-24F) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

/// To nearest even, as a conversion to f16 and back; what is too large becomes infinite.
float rounded_to_f16(float value) {
  const float size = std::fabs(value);
  if (!(size < 65520.0F)) return value * std::numeric_limits<float>::infinity();
  if (size < 0x1p-14F) return std::copysign((size + 0.5F) - 0.5F, value);
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits += 0xFFF + (bits >> 13 & 1);
  return std::bit_cast<float>(bits & ~uint32_t{0x1FFF});
}

float value_at(const StoredFloats& floats, size_t i) {
  if (floats.dtype == DType::kF32) return load<float>(floats.bytes, i);
  const auto half = load<uint16_t>(floats.bytes, i);
  return floats.dtype == DType::kF16 ? from_f16(half) : from_bf16(half);
}

void need_float(DType dtype) {
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) return;
  throw Error(Code::kConfig, "floats",
              concat("dtype: got ", dtype_name(dtype), ", need f32, f16 or bf16"));
}

}  // namespace

std::optional<size_t> find_not_finite(const StoredFloats& floats) {
  need_float(floats.dtype);
  if (floats.dtype == DType::kF32) return find_exponent<uint32_t>(floats.bytes, 0x7F800000);
  return find_exponent<uint16_t>(floats.bytes, floats.dtype == DType::kF16 ? 0x7C00 : 0x7F80);
}

void widen(const StoredFloats& floats, float* to) {
  need_float(floats.dtype);
  const size_t count = floats.bytes.size() / dtype_bytes(floats.dtype);
  for (size_t i = 0; i < count; ++i) to[i] = value_at(floats, i);
}

bool biases_follow(const StoredFloats& scales, const StoredFloats& biases, float factor) {
  need_float(scales.dtype);
  need_float(biases.dtype);
  const size_t count = scales.bytes.size() / dtype_bytes(scales.dtype);
  if (count != biases.bytes.size() / dtype_bytes(biases.dtype)) return false;
  for (size_t i = 0; i < count; ++i) {
    const float want = rounded_to_f16(rounded_to_f16(value_at(scales, i)) * factor);
    if (rounded_to_f16(value_at(biases, i)) != want) return false;
  }
  return true;
}

}  // namespace butter
