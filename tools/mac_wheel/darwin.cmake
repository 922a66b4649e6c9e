# Toolchain file of build.sh: Zig's clang for macOS 14 on arm64, stubs instead of an SDK.

set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_OSX_ARCHITECTURES "" CACHE STRING "")  # zig.py names the target
set(CMAKE_OSX_SYSROOT "" CACHE STRING "")

set(bin "$ENV{BUTTER_CROSS_BIN}")
set(CMAKE_C_COMPILER "${bin}/cc")
set(CMAKE_CXX_COMPILER "${bin}/c++")
set(CMAKE_OBJCXX_COMPILER "${bin}/c++")
set(CMAKE_AR "${bin}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${bin}/ranlib" CACHE FILEPATH "")
# Would break the signature that the linker made; CMake insists on a name, the build needs none.
set(CMAKE_INSTALL_NAME_TOOL /bin/false CACHE FILEPATH "")
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # Zig has no clang-scan-deps

get_filename_component(here "${CMAKE_CURRENT_LIST_DIR}" ABSOLUTE)
get_filename_component(root "${here}/../.." ABSOLUTE)
# Zig's libc++ is newer than that of macOS 14: with its annotations on, what the system's lacks is
# an error, as with Apple's SDK.
set(availability "-U_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS -D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=1")
set(CMAKE_CXX_FLAGS_INIT "${availability}")
set(CMAKE_OBJCXX_FLAGS_INIT "${availability} -isystem ${root}/tests/softmetal/include")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-F${here}/stubs -L${here}/stubs -lobjc")
