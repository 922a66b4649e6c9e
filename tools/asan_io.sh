#!/bin/sh
# Runs the tests of csrc/io under AddressSanitizer and UBSan, by hand, on Linux with g++:
#   tools/asan_io.sh [PYTHON]   (a Python that has nanobind, pytest and the test extra)
# Twice: with mapped files, and with each file in a heap block of its exact size.
set -eu

cd "$(dirname "$0")/.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/butter"
cp python/butter/errors.py "$work/butter/"
: >"$work/butter/__init__.py"

headers=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
nanobind=$("$python" -m nanobind --include_dir)
flags="-std=c++20 -O1 -g -fPIC -fno-omit-frame-pointer -fvisibility=hidden -Wall -Wextra -Werror
  -fsanitize=address,undefined -fno-sanitize-recover=undefined -D_GLIBCXX_ASSERTIONS
  -DNB_BACKEND_MODULE=nanobind_backend -DPy_LIMITED_API=0x030b0000
  -isystem $headers -isystem $nanobind -Icsrc"

run() {  # run SOURCES FLAGS TESTS...
  sources=$1 extra=$2
  shift 2
  # shellcheck disable=SC2086
  g++ $flags $extra -shared -o "$work/butter/_native.abi3.so" tools/asan_io.cpp \
    csrc/bind/bind_errors.cpp csrc/bind/bind_io.cpp $sources
  # Python itself leaks at exit.
  LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1 \
    UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH="$work" \
    "$python" -m pytest -q --capture=sys -p no:cacheprovider -o pythonpath="$work tests" "$@"
}

files="tests/native/test_safetensors.py tests/native/test_gguf.py tests/native/test_hostile_files.py"
# shellcheck disable=SC2086
run "$(echo csrc/io/*.cpp)" "" $files -k "not 50_ms"
# shellcheck disable=SC2086
run "$(ls csrc/io/*.cpp | grep -v mapping)" -DBUTTER_HEAP_FILES $files \
  -k "not release and not file_is_refused and not not_a_file and not past_the_limit and not 50_ms"
