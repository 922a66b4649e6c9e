# Runs the kernel compiler when the build is configured, and again when a kernel or Iron changes.

include(selftest)
set(BUTTER_GENERATED "${CMAKE_BINARY_DIR}/iron")

function(butter_run_iron)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/codegen/*.py" "${BUTTER_KERNELS}/*.py")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  set(emit cpu)
  if(BUTTER_METAL)
    set(emit cpu,msl)
  endif()
  message(STATUS "Compiling kernels with Iron")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env
            "PYTHONPATH=${PROJECT_SOURCE_DIR}/codegen:${BUTTER_KERNELS}" PYTHONDONTWRITEBYTECODE=1
            "${Python_EXECUTABLE}" -m iron --kernels "${BUTTER_KERNELS}"
            build --emit ${emit} --out "${BUTTER_GENERATED}"
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "Iron could not compile the kernels; its message is above.")
  endif()
  butter_selftest()
endfunction()
