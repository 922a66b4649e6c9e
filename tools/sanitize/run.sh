#!/bin/sh
# Decodes tiny models on the CPU and on the software Metal under a sanitizer, on Linux with clang-19:
#   PYTHON=python tools/sanitize/run.sh address    AddressSanitizer, LeakSanitizer and UBSan
#   PYTHON=python tools/sanitize/run.sh thread     ThreadSanitizer
# The core, the bindings, both devices, their kernels and the software Metal are instrumented;
# Python and its packages are not. The first report ends the run.
set -eu

cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
case ${1:-} in
  address) flags=address,undefined runtime=asan faults="overflow leak" report=AddressSanitizer ;;
  thread) flags=thread runtime=tsan faults=race report="ThreadSanitizer: data race" ;;
  *) sed -n '2,6p' "$0" >&2; exit 2 ;;
esac
package=$(tools/test_build.sh "$1" "-DBUTTER_SANITIZE=$flags")

# Objects of Python that hold ours must come from malloc, or the leak check does not see them.
export PYTHONMALLOC=malloc PYTHONPATH="$package:tests:codegen"
here=$PWD/tools/sanitize
export LSAN_OPTIONS="suppressions=$here/leaks.txt:print_suppressions=0"
export ASAN_OPTIONS=fast_unwind_on_malloc=0 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
if [ "$1" = thread ]; then
  export BUTTER_ISA=base  # vectors of more than 16 bytes are not instrumented
fi
library=$(clang++-19 -print-file-name="libclang_rt.$runtime-x86_64.so")
run() { LD_PRELOAD=$library "$python" "$@"; }

for device in cpu metal; do
  for fault in $faults; do
    if said=$(run tools/sanitize/planted.py "$fault" "$device" 2>&1); then
      echo "a planted $fault was not found on $device" >&2; exit 1
    fi
    case $said in *"$report"*|*LeakSanitizer*) ;; *) echo "$said" >&2; exit 1 ;; esac
    echo "$device: found a planted $fault"
  done
  run tools/sanitize/work.py "$device"
done
echo "$1: clean"
