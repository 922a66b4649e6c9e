# Language level, warnings and sanitizers of our own C++.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)  # there are none, and not every clang has clang-scan-deps
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(BUTTER_SANITIZE)
  add_compile_options(-fsanitize=${BUTTER_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${BUTTER_SANITIZE})
  if(BUTTER_SANITIZE MATCHES "undefined")
    # Those two would need the types of one image to be visible in all others.
    add_compile_options(-fno-sanitize=vptr,function -fno-sanitize-recover=undefined)
  endif()
endif()
if(BUTTER_COVERAGE)
  add_link_options(-fprofile-instr-generate)
endif()

function(butter_compile target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/csrc" "${BUTTER_GENERATED}")
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${BUTTER_WERROR}>:-Werror>)
endfunction()
