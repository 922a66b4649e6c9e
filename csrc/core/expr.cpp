#include "core/expr.h"

#include "core/error.h"

namespace butter {
namespace {

constexpr size_t kStack = 32;

int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

[[noreturn]] void overflow() {
  throw Error(Code::kShape, "expr", "a size does not fit in 64 bits. Use smaller dims.");
}

int64_t divide(Op op, int64_t a, int64_t b) {
  if (b == 0) throw Error(Code::kShape, "expr", concat("division of ", a, " by a dim that is 0."));
  if (b == -1) {  // INT64_MIN / -1 traps
    int64_t negated;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) overflow();
    return op == Op::kMod ? 0 : negated;
  }
  const int64_t q = floor_div(a, b);
  if (op == Op::kDiv) return q;
  if (op == Op::kMod) return a - q * b;
  return q * b == a ? q : q + 1;
}

int64_t apply(Op op, int64_t a, int64_t b) {
  int64_t r;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &r)) overflow();
      return r;
    case Op::kSub:
      if (__builtin_sub_overflow(a, b, &r)) overflow();
      return r;
    case Op::kMul:
      if (__builtin_mul_overflow(a, b, &r)) overflow();
      return r;
    case Op::kDiv:
    case Op::kCeilDiv:
    case Op::kMod:
      return divide(op, a, b);
    case Op::kMin:
      return a < b ? a : b;
    case Op::kMax:
      return a > b ? a : b;
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    case Op::kAnd:
      return a != 0 && b != 0;
    case Op::kOr:
      return a != 0 || b != 0;
    default:
      throw Error(Code::kKernel, "expr", "the manifest holds an unknown operation.");
  }
}

}  // namespace

int64_t evaluate(Expr expr, std::span<const uint32_t> dims, uint32_t warp) {
  int64_t stack[kStack];
  size_t depth = 0;
  for (const ExprOp& op : expr) {
    if (op.op <= Op::kWarp) {
      const bool known = op.op != Op::kDim || size_t(op.value) < dims.size();
      if (depth == kStack || !known) {
        throw Error(Code::kKernel, "expr", "the manifest holds a malformed expression.");
      }
      stack[depth++] = op.op == Op::kInt   ? op.value
                       : op.op == Op::kDim ? int64_t{dims[size_t(op.value)]}
                                           : int64_t{warp};
      continue;
    }
    if (depth < 2) throw Error(Code::kKernel, "expr", "the manifest holds a malformed expression.");
    stack[depth - 2] = apply(op.op, stack[depth - 2], stack[depth - 1]);
    --depth;
  }
  if (depth != 1) throw Error(Code::kKernel, "expr", "the manifest holds a malformed expression.");
  return stack[0];
}

}  // namespace butter
