// Linked into every library: hands over the units of its files.
#include "runner.h"

extern const MslUnit* const __start_msl_units[] __attribute__((weak, visibility("hidden")));
extern const MslUnit* const __stop_msl_units[] __attribute__((weak, visibility("hidden")));
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char _end[] __attribute__((weak, visibility("hidden")));

extern "C" __attribute__((visibility("default"))) MslLibrary msl_library() {
  return {__start_msl_units, __stop_msl_units, __ehdr_start, _end};
}

// clang calls these before each load and store (-fsanitize-coverage=trace-loads,trace-stores).
// Hidden, or a sanitizer's weak ones would be taken.
#define TRACE(bytes)                                                                             \
  extern "C" __attribute__((visibility("hidden"))) void __sanitizer_cov_load##bytes(void* at) {  \
    msl_access(at, bytes, false);                                                                \
  }                                                                                              \
  extern "C" __attribute__((visibility("hidden"))) void __sanitizer_cov_store##bytes(void* at) { \
    msl_access(at, bytes, true);                                                                 \
  }

TRACE(1)
TRACE(2)
TRACE(4)
TRACE(8)
TRACE(16)
