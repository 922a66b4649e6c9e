#!/bin/sh
# Builds Butter's wheel for macOS on arm64, on Linux, and audits it:
#   tools/mac_wheel/build.sh OUT_DIR        (PYTHON: a Python 3.11 or newer with venv and headers)
# Needs only pip; index settings come from the environment. The compiler is Zig's clang. Apple's SDK
# is replaced by the headers of tests/softmetal/include and the stubs beside this file. This checks
# that the code is portable and links; nothing runs, and wheels to publish are made on a Mac.
# OUT_DIR keeps the environment and the objects for the next time.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "${1:?usage: build.sh OUT_DIR}"
out=$(cd "$1" && pwd)
python=$out/venv/bin/python

[ -x "$python" ] || "${PYTHON:-python3}" -m venv "$out/venv"
"$python" -c 'import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"], sep="\n")' \
  "$root/pyproject.toml" >"$out/requirements.txt"
"$python" -m pip install -q -r "$out/requirements.txt" -r "$here/requirements.txt" \
  'cmake>=3.29' ninja 'ziglang==0.17.1'

mkdir -p "$out/bin"
for tool in cc c++ ar ranlib; do
  printf '#!/bin/sh\nexec "%s" "%s/zig.py" %s "$@"\n' "$python" "$here" "$tool" >"$out/bin/$tool"
  chmod +x "$out/bin/$tool"
done

rm -f "$out"/butter-*.whl
start=$(date +%s)
export BUTTER_CROSS_BIN="$out/bin" PATH="$out/venv/bin:$PATH"
# What a Mac's Python would say: the wheel's tag and the module's suffix come from these.
export _PYTHON_HOST_PLATFORM=macosx-14.0-arm64 MACOSX_DEPLOYMENT_TARGET=14.0 ARCHFLAGS="-arch arm64"
export SETUPTOOLS_EXT_SUFFIX=.cpython-311-darwin.so
"$python" -m pip wheel -q --no-build-isolation --no-deps -w "$out" "$root" \
  -Cbuild-dir="$out/build" -Ccmake.define.CMAKE_TOOLCHAIN_FILE="$here/darwin.cmake"
wheel=$(echo "$out"/butter-*.whl)
echo "built in $(($(date +%s) - start)) s: $wheel"
"$python" "$here/audit.py" "$wheel"
