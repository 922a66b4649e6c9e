#!/bin/sh
# Builds Butter with clang and the software Metal, and prints a folder for PYTHONPATH:
#   tools/test_build.sh NAME [CMAKE_OPTION...]
# It lies in build/NAME, or in $BUTTER_BUILDS/NAME; $PYTHON has nanobind, numpy and the test extra.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUTTER_BUILDS:-$root/build}/$1
python=$(command -v "${PYTHON:-python3}")
shift

cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DBUTTER_SOFTMETAL=ON \
  -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 "-DPython_EXECUTABLE=$python" \
  "$@" >&2
cmake --build "$build" --target _native >&2

package=$build/package/butter
rm -rf "$package"
mkdir -p "$package"
ln -s "$root"/python/butter/* "$package"
for made in _native.abi3.so metal iron/manifest.json iron/python/_kernels.py; do
  ln -sf "$build/$made" "$package"
done
echo "$build/package"
