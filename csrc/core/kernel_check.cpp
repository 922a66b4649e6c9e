#include "core/kernel_check.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/expr.h"

namespace butter {
namespace {

// What every back end can run: CUDA's limits of y and z are the smallest.
constexpr int64_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr int64_t kMaxGroups = 4294967295;

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view symbol) {
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (const KernelInfo& info : manifest()) {
    const size_t distance =
        std::min(edit_distance(symbol, info.symbol), edit_distance(symbol, info.name));
    ranked.emplace_back(distance, info.symbol);
  }
  const size_t count = std::min<size_t>(3, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + ptrdiff_t(count), ranked.end());
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i ? ", " : "") + std::string(ranked[i].second);
  return text;
}

std::string describe(const KernelInfo& info, std::span<const uint32_t> dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) {
    text += concat(i ? ", " : "", info.dims[i], "=", dims[i]);
  }
  return text;
}

[[noreturn]] void fail(const KernelInfo& info, const std::string& message) {
  throw Error(Code::kShape, std::string(info.symbol), message);
}

void check_counts(const KernelInfo& info, size_t tensors, size_t consts, size_t dims) {
  if (tensors != info.params.size()) {
    fail(info, concat("wrong number of tensors: got ", tensors, ", need ", info.params.size()));
  }
  if (consts != info.consts.size()) {
    fail(info, concat("wrong number of constants: got ", consts, ", need ", info.consts.size()));
  }
  if (dims != info.dims.size()) {
    fail(info, concat("wrong number of dims: got ", dims, ", need ", info.dims.size()));
  }
}

/// Bytes that the parameter's shape needs.
size_t needed_bytes(const KernelInfo& info, const ParamInfo& param, std::span<const uint32_t> dims,
                    uint32_t warp) {
  int64_t bytes = int64_t(dtype_bytes(param.dtype));
  for (const Expr& extent : param.shape) {
    const int64_t n = evaluate(extent, dims, warp);
    if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes)) {
      fail(info, concat("tensor '", param.name, "' has an impossible extent: got ", n, " for ",
                        describe(info, dims)));
    }
  }
  return size_t(bytes);
}

void check_tensor(const KernelInfo& info, const ParamInfo& param, const BoundTensor& tensor,
                  std::span<const uint32_t> dims, uint32_t warp) {
  if (tensor.dtype && *tensor.dtype != param.dtype) {
    fail(info, concat("tensor '", param.name, "' has the wrong dtype: got ",
                      dtype_name(*tensor.dtype), ", need ", dtype_name(param.dtype)));
  }
  const size_t need = needed_bytes(info, param, dims, warp);
  if (tensor.bytes < need) {
    fail(info, concat("tensor '", param.name, "' is too small: got ", tensor.bytes, " bytes, need ",
                      need, " for ", describe(info, dims)));
  }
  if (tensor.offset % dtype_bytes(param.dtype) != 0) {
    fail(info, concat("tensor '", param.name, "' is misaligned: got byte offset ", tensor.offset,
                      ", need a multiple of ", dtype_bytes(param.dtype)));
  }
  if (param.kind != ParamKind::kIn && !tensor.writable) {
    fail(info, concat("output '", param.name, "' is bound to read-only memory. Bind a buffer."));
  }
}

void check_aliasing(const KernelInfo& info, std::span<const BoundTensor> tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (info.params[i].kind == ParamKind::kIn) continue;
    for (size_t j = 0; j < tensors.size(); ++j) {
      const BoundTensor &a = tensors[i], &b = tensors[j];
      const bool overlap = a.resource == b.resource && a.offset < b.offset + b.bytes &&
                           b.offset < a.offset + a.bytes;
      if (i != j && overlap) {
        fail(info, concat("output '", info.params[i].name, "' overlaps '", info.params[j].name,
                          "'. Bind separate ranges; a kernel that works in place says inout."));
      }
    }
  }
}

}  // namespace

const KernelInfo& find_kernel(std::string_view symbol) {
  const auto all = manifest();
  const auto it = std::ranges::lower_bound(all, symbol, {}, &KernelInfo::symbol);
  if (it != all.end() && it->symbol == symbol) return *it;
  throw Error(Code::kKernel, "kernels",
              concat("unknown kernel: got '", symbol, "'. Nearest: ", nearest(symbol), "."));
}

Grid evaluate_grid(const KernelInfo& info, std::span<const uint32_t> dims, uint32_t warp) {
  Grid grid;
  int64_t groups = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t n = evaluate(info.grid[axis], dims, warp);
    if (n < 0 || n > kMaxGrid[axis]) {
      fail(info, concat("grid axis ", axis, " is out of range: got ", n, ", need 0..",
                        kMaxGrid[axis], " for ", describe(info, dims)));
    }
    grid[size_t(axis)] = uint32_t(n);
    if (__builtin_mul_overflow(groups, n, &groups)) groups = kMaxGroups + 1;
  }
  if (groups > kMaxGroups) {
    fail(info, concat("too many groups for ", describe(info, dims), ". Use smaller dims."));
  }
  return grid;
}

Grid check_dispatch(const KernelInfo& info, std::span<const BoundTensor> tensors, size_t consts,
                    std::span<const uint32_t> dims, uint32_t warp) {
  check_counts(info, tensors.size(), consts, dims.size());
  for (const Constraint& constraint : info.constraints) {
    if (evaluate(constraint.expr, dims, warp) == 0) {
      fail(info,
           concat("dims break the constraint '", constraint.text, "': got ", describe(info, dims)));
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_tensor(info, info.params[i], tensors[i], dims, warp);
  }
  check_aliasing(info, tensors);
  return evaluate_grid(info, dims, warp);
}

}  // namespace butter
