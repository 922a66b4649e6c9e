#include "io/gguf_types.h"

namespace butter {
namespace {

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {2, "Q4_0", 32, 18},    // scale f16, 32 codes
    {3, "Q4_1", 32, 20},    // scale, minimum f16, 32 codes
    {6, "Q5_0", 32, 22},    // Q4_0 and 32 high bits
    {7, "Q5_1", 32, 24},    // Q4_1 and 32 high bits
    {8, "Q8_0", 32, 34},    // scale f16, 32 codes
    {10, "Q2_K", 256, 84},  // 16 scales and minimums of 4 bits, 256 codes, two f16
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},  // two f16, 8 scales and minimums of 6 bits, 256 codes
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {30, "BF16", 1, 2},
    // Known by name only.
    {4, "Q4_2", 0, 0},
    {5, "Q4_3", 0, 0},
    {9, "Q8_1", 0, 0},
    {15, "Q8_K", 0, 0},
    {16, "IQ2_XXS", 0, 0},
    {17, "IQ2_XS", 0, 0},
    {18, "IQ3_XXS", 0, 0},
    {19, "IQ1_S", 0, 0},
    {20, "IQ4_NL", 0, 0},
    {21, "IQ3_S", 0, 0},
    {22, "IQ2_S", 0, 0},
    {23, "IQ4_XS", 0, 0},
    {29, "IQ1_M", 0, 0},
    {31, "Q4_0_4_4", 0, 0},
    {32, "Q4_0_4_8", 0, 0},
    {33, "Q4_0_8_8", 0, 0},
    {34, "TQ1_0", 0, 0},
    {35, "TQ2_0", 0, 0},
    {36, "IQ4_NL_4_4", 0, 0},
    {37, "IQ4_NL_4_8", 0, 0},
    {38, "IQ4_NL_8_8", 0, 0},
    {39, "MXFP4", 0, 0},
    {40, "NVFP4", 0, 0},
    {41, "Q1_0", 0, 0},
};

}  // namespace

const GgufType* find_gguf_type(uint32_t id) {
  for (const GgufType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

std::string supported_gguf_types() {
  std::string names;
  for (const GgufType& type : kTypes) {
    if (!type.is_supported()) continue;
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

}  // namespace butter
