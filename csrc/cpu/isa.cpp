#include "cpu/isa.h"

#include <cstdlib>
#include <vector>

#include "core/error.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace butter::cpu {
namespace {

struct Candidate {
  Isa isa;
  bool present;
};

#if defined(__x86_64__)

// Narrowest first. The compiler's builtin asks CPUID and whether the system saves the registers.
std::vector<Candidate> candidates() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  const bool v4_bf16 = v4 && __builtin_cpu_supports("avx512bf16");
  return {{{"base", 4, table_base}, true},
          {{"v3", 8, table_v3}, v3},
          {{"v4", 16, table_v4}, v4},
          {{"v4_bf16", 16, table_v4, table_v4_bf16}, v4_bf16}};
}

#elif defined(__aarch64__)

bool has_dotprod() {
#if defined(__APPLE__)
  return true;  // every Apple silicon
#else
  const unsigned long caps = getauxval(AT_HWCAP);
  return (caps & HWCAP_ASIMDDP) != 0 && (caps & HWCAP_FPHP) != 0 && (caps & HWCAP_ASIMDHP) != 0;
#endif
}

std::vector<Candidate> candidates() {
  return {{{"neon", 4, table_neon}, true}, {{"dotprod", 4, table_dotprod}, has_dotprod()}};
}

#else
#error "Butter's CPU back end knows x86-64 and arm64."
#endif

}  // namespace

Isa choose_isa() {
  const std::vector<Candidate> all = candidates();
  const char* wanted = std::getenv("BUTTER_ISA");
  std::string names;
  const Candidate* best = nullptr;
  for (const Candidate& c : all) {
    if (!c.present) continue;
    names += (names.empty() ? "" : ", ") + c.isa.name;
    if (!wanted || !*wanted || c.isa.name == wanted) best = &c;
  }
  if (best) return best->isa;
  throw Error(Code::kConfig, "cpu",
              concat("BUTTER_ISA names an instruction set that this machine "
                     "lacks: got '",
                     wanted, "', need one of ", names, "."));
}

}  // namespace butter::cpu
