// What every kernel needs and promises. The tables are generated (iron: manifest.cpp); this is
// their shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace butter {

enum class DType : uint8_t { kF32, kF16, kBF16, kI8, kU8, kI16, kU16, kI32, kU32 };

inline constexpr std::string_view kDTypeNames[] = {"f32", "f16", "bf16", "i8", "u8",
                                                   "i16", "u16", "i32",  "u32"};
inline constexpr uint8_t kDTypeBytes[] = {4, 2, 2, 1, 1, 2, 2, 4, 4};

constexpr std::string_view dtype_name(DType dtype) { return kDTypeNames[size_t(dtype)]; }
constexpr size_t dtype_bytes(DType dtype) { return kDTypeBytes[size_t(dtype)]; }

/// Postfix integer arithmetic in 64 bits. Division and modulo floor; comparisons give 0 or 1.
enum class Op : uint8_t {
  kInt,   // push value
  kDim,   // push dims[value]
  kWarp,  // push the device's warp width
  kAdd,
  kSub,
  kMul,
  kDiv,
  kCeilDiv,
  kMod,
  kMin,
  kMax,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
};

struct ExprOp {
  Op op;
  int64_t value = 0;
};
using Expr = std::span<const ExprOp>;

enum class ParamKind : uint8_t { kIn, kOut, kInOut };

struct ParamInfo {
  std::string_view name;
  ParamKind kind;
  DType dtype;
  std::span<const Expr> shape;  // outer to inner
};

struct ConstInfo {
  std::string_view name;
  DType dtype;  // kF32, kI32 or kU32
};

struct Constraint {
  Expr expr;              // must not be 0
  std::string_view text;  // as the author wrote it: "n % 32 == 0"
};

struct KernelInfo {
  std::string_view symbol;
  std::string_view name;
  std::string_view source;  // "kernels/norm.py"
  std::span<const ParamInfo> params;
  std::span<const ConstInfo> consts;
  std::span<const std::string_view> dims;
  bool uses_step;    // the step block follows the last parameter
  bool writes_step;  // it writes a field of it, such as out_token
  Expr grid[3];
  uint32_t group;         // lanes per group on a GPU; a CPU group is one warp
  uint32_t shared_bytes;  // threadgroup memory on a GPU
  std::span<const Constraint> constraints;
  Expr bytes;  // moved to and from memory by one dispatch
  Expr flops;
};

/// Every kernel of this build, sorted by symbol. Defined in the generated manifest.cpp.
std::span<const KernelInfo> manifest();

}  // namespace butter
