// libgcc 12 cannot round to bfloat16.
#include <cstdint>

extern "C" __bf16 __truncsfbf2(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return __builtin_bit_cast(__bf16, uint16_t((is_nan ? bits | 0x400000 : rounded) >> 16));
}
