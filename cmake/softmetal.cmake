# The software Metal of tests/softmetal: builds libsoftmetal.so and kernels.metallib on Linux, so
# that the Metal back end can be compiled and run without a Mac. Test builds only.

set(softmetal_dir "${PROJECT_SOURCE_DIR}/tests/softmetal")
set(CMAKE_OBJCXX_STANDARD 20)
set(CMAKE_OBJCXX_STANDARD_REQUIRED ON)
set(CMAKE_OBJCXX_EXTENSIONS OFF)
set(CMAKE_OBJCXX_VISIBILITY_PRESET hidden)
if(NOT CMAKE_OBJCXX_COMPILER)
  find_program(CMAKE_OBJCXX_COMPILER NAMES clang++-19 clang++ REQUIRED)
endif()
enable_language(OBJCXX)
enable_language(C)
# CMake knows no rpath flag for Objective-C++ on Linux.
set(CMAKE_SHARED_LIBRARY_RUNTIME_OBJCXX_FLAG "-Wl,-rpath,")
set(CMAKE_SHARED_LIBRARY_RUNTIME_OBJCXX_FLAG_SEP ":")
set(CMAKE_EXECUTABLE_RUNTIME_OBJCXX_FLAG "-Wl,-rpath,")
set(CMAKE_EXECUTABLE_RUNTIME_OBJCXX_FLAG_SEP ":")
if(NOT CMAKE_OBJCXX_COMPILER_ID MATCHES "Clang" OR APPLE)
  message(FATAL_ERROR "BUTTER_SOFTMETAL needs Linux and clang++ as the Objective-C++ compiler.")
endif()

file(GLOB softmetal_sources CONFIGURE_DEPENDS
     "${softmetal_dir}/objcrt/*.cpp" "${softmetal_dir}/foundation/*.mm"
     "${softmetal_dir}/metal/*.cpp" "${softmetal_dir}/metal/*.mm" "${softmetal_dir}/msl/*.cpp")
list(REMOVE_ITEM softmetal_sources "${softmetal_dir}/msl/library.cpp")
add_library(softmetal SHARED ${softmetal_sources} "${softmetal_dir}/objcrt/image.c")
# One compiler for all of it: __bf16 and tls_model(initial-exec) need clang.
set_source_files_properties(${softmetal_sources} PROPERTIES LANGUAGE OBJCXX)
file(GLOB arc_sources "${softmetal_dir}/metal/*.mm")
set_source_files_properties(${arc_sources} PROPERTIES COMPILE_OPTIONS "-fobjc-arc")
file(GLOB plain_sources "${softmetal_dir}/objcrt/*.cpp" "${softmetal_dir}/metal/*.cpp"
     "${softmetal_dir}/msl/*.cpp")
set_source_files_properties(${plain_sources} PROPERTIES COMPILE_OPTIONS "-xc++")
if(BUTTER_SANITIZE MATCHES "thread")
  # Calls that return on another stack than they began on would confuse it.
  set_source_files_properties("${softmetal_dir}/msl/fibers.cpp" PROPERTIES
                              COMPILE_OPTIONS "-xc++;-fno-sanitize=thread")
endif()
set_target_properties(softmetal PROPERTIES
  OBJCXX_VISIBILITY_PRESET default C_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
target_include_directories(softmetal SYSTEM PUBLIC
  "${softmetal_dir}/include" "${softmetal_dir}/objcrt")
target_compile_options(softmetal PRIVATE -g -O2
  $<$<COMPILE_LANGUAGE:OBJCXX>:-Wall -Wextra $<$<BOOL:${BUTTER_WERROR}>:-Werror>>)
target_compile_options(softmetal PUBLIC
  $<$<COMPILE_LANGUAGE:OBJCXX>:-fobjc-runtime=macosx-14.0 -fblocks -fexceptions>)
set(softmetal_compiler "${Python_EXECUTABLE}" "${softmetal_dir}/msl/compile.py"
    --clang "${CMAKE_OBJCXX_COMPILER}")
list(JOIN softmetal_compiler " " softmetal_command)
target_compile_definitions(softmetal PRIVATE SOFTMETAL_COMPILE="${softmetal_command}")
target_link_libraries(softmetal PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)

# Adds the Objective-C runtime to an image and links it to the software Metal.
function(butter_use_softmetal target)
  target_sources(${target} PRIVATE "${softmetal_dir}/objcrt/image.c")
  target_link_libraries(${target} PRIVATE softmetal)
  set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH "$ORIGIN;${CMAKE_BINARY_DIR}")
  set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "$ORIGIN")
endfunction()

# butter_softmetal_library(NAME FILE...): NAME.metallib from MSL, in the build folder.
function(butter_softmetal_library name)
  file(GLOB compiler "${softmetal_dir}/msl/*.py" "${softmetal_dir}/msl/include/*")
  set(out "${CMAKE_BINARY_DIR}/${name}.metallib")
  if(BUTTER_SANITIZE MATCHES "address|undefined")
    set(flags --flag=-fsanitize=${BUTTER_SANITIZE})
  endif()
  add_custom_command(
    OUTPUT "${out}"
    COMMAND ${softmetal_compiler} ${flags} --runner "${CMAKE_BINARY_DIR}" --out "${out}" ${ARGN}
    DEPENDS softmetal ${ARGN} ${compiler} "${softmetal_dir}/msl/library.cpp"
            "${softmetal_dir}/msl/runner.h"
    COMMENT "Compiling ${name}.metallib for the software Metal" VERBATIM)
  add_custom_target(softmetal_${name} ALL DEPENDS "${out}")
endfunction()

# On demand, as it takes a minute: metallib/kernels.metallib of all emitted kernels, for
# BUTTER_METAL_KERNELS. Without it Metal compiles the text of a kernel's file when it is first used.
if(BUTTER_GENERATED)
  add_custom_target(softmetal_kernels
    COMMAND ${softmetal_compiler} --runner "${CMAKE_BINARY_DIR}"
            --out "${CMAKE_BINARY_DIR}/metallib/kernels.metallib" "${BUTTER_GENERATED}/metal"
    DEPENDS softmetal COMMENT "Compiling all kernels for the software Metal" VERBATIM)
endif()
