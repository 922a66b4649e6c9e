# The Metal back end: on a Mac with Apple silicon, or on Linux against the software Metal of the
# tests (BUTTER_SOFTMETAL). Other builds have csrc/absent/metal.cpp in its place.

option(BUTTER_SOFTMETAL "Test builds on Linux: build csrc/metal against tests/softmetal" OFF)

set(BUTTER_METAL OFF)
if(BUTTER_SOFTMETAL)
  set(BUTTER_METAL ON)
  include(softmetal)
elseif(APPLE AND CMAKE_SYSTEM_PROCESSOR STREQUAL "arm64")
  set(BUTTER_METAL ON)
  set(CMAKE_OBJCXX_STANDARD 20)
  set(CMAKE_OBJCXX_STANDARD_REQUIRED ON)
  set(CMAKE_OBJCXX_EXTENSIONS OFF)
  set(CMAKE_OBJCXX_VISIBILITY_PRESET hidden)
  enable_language(OBJCXX)
endif()

# The back end's objects, to be linked into `target`.
function(butter_metal target)
  file(GLOB sources CONFIGURE_DEPENDS csrc/metal/*.mm)
  add_library(butter_metal OBJECT ${sources})
  butter_compile(butter_metal)
  target_compile_options(butter_metal PRIVATE -fno-objc-arc -fblocks)
  if(BUTTER_COVERAGE)
    target_compile_options(butter_metal PRIVATE -fprofile-instr-generate -fcoverage-mapping)
  endif()
  if(BUTTER_SOFTMETAL)
    target_link_libraries(butter_metal PRIVATE softmetal)
    butter_use_softmetal(${target})
    install(TARGETS softmetal LIBRARY DESTINATION butter)
  else()
    target_link_libraries(${target} PRIVATE "-framework Metal" "-framework Foundation")
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:butter_metal>)
  _butter_metal_kernels(${target})
endfunction()

# kernels.metallib where Xcode's compiler is found; else the MSL text, which Metal compiles at run
# time. Either lies beside the extension.
function(_butter_metal_kernels target)
  file(GLOB texts CONFIGURE_DEPENDS "${BUTTER_GENERATED}/metal/*.metal")
  set(compiler FALSE)
  if(APPLE)
    # Run, not only found: Xcode 26 finds it where the Metal toolchain was never downloaded.
    execute_process(COMMAND xcrun --sdk macosx metal --version OUTPUT_QUIET ERROR_QUIET
                    RESULT_VARIABLE missing)
    if(NOT missing)
      set(compiler TRUE)
    endif()
  endif()
  if(NOT compiler)
    message(STATUS "Shipping Metal kernels as text")
    add_custom_command(TARGET ${target} POST_BUILD
                       COMMAND "${CMAKE_COMMAND}" -E copy_directory "${BUTTER_GENERATED}/metal"
                               "$<TARGET_FILE_DIR:${target}>/metal")
    install(DIRECTORY "${BUTTER_GENERATED}/metal" DESTINATION butter)
    return()
  endif()
  set(objects "")
  foreach(text IN LISTS texts)
    get_filename_component(name "${text}" NAME_WE)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/air/${name}.air")
    add_custom_command(OUTPUT "${object}" DEPENDS "${text}" VERBATIM
                       COMMAND xcrun --sdk macosx metal -std=metal3.1 -fno-fast-math
                               -mmacosx-version-min=14.0 -c "${text}" -o "${object}")
    list(APPEND objects "${object}")
  endforeach()
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/air")
  set(library "${CMAKE_CURRENT_BINARY_DIR}/kernels.metallib")
  add_custom_command(OUTPUT "${library}" DEPENDS ${objects} VERBATIM
                     COMMAND xcrun --sdk macosx metallib ${objects} -o "${library}")
  add_custom_target(butter_metallib ALL DEPENDS "${library}")
  install(FILES "${library}" DESTINATION butter)
endfunction()
