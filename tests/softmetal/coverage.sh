#!/bin/sh
# Line coverage of csrc/metal by the back end's tests, on Linux with clang-19 and llvm-19:
#   PYTHON=python tests/softmetal/coverage.sh [PYTEST_ARGUMENT...]
# Prints a table by file and the lines that did not run; fails below 90 %. What stays uncovered is
# explained in docs/metal.md.
set -eu

cd "$(dirname "$0")/../.."
python=${PYTHON:-python3}
package=$(tools/test_build.sh coverage -DBUTTER_COVERAGE=ON)
profiles=$package/profiles
rm -rf "$profiles"

# All instances of all kernels add minutes and no line.
tests=$(ls tests/metal/test_backend_*.py | grep -v instances)
# One file for all processes: %m merges theirs.
# shellcheck disable=SC2086
LLVM_PROFILE_FILE="$profiles/%m.profraw" PYTHONPATH="$package" \
  "$python" -m pytest -q -p no:cacheprovider $tests "$@"

llvm-profdata-19 merge -o "$profiles/all.profdata" "$profiles"/*.profraw
"$python" tests/softmetal/coverage.py "$package/butter/_native.abi3.so" "$profiles/all.profdata"
