# What every kernel has to compute, for `butter doctor`: Iron's interpreter runs them at build time.

function(butter_selftest)
  set(script "${PROJECT_SOURCE_DIR}/tools/selftest_references.py")
  set(references "${BUTTER_GENERATED}/selftest.npz")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       "${PROJECT_SOURCE_DIR}/codegen/*.py" "${BUTTER_KERNELS}/*.py"
       "${PROJECT_SOURCE_DIR}/python/butter/selftest/*.py")
  if(NOT BUTTER_METAL)
    set(only --cpu-only)
  endif()
  add_custom_command(
    OUTPUT "${references}"
    # PYTHONPATH stays as it is: there an isolated build finds numpy.
    COMMAND "${CMAKE_COMMAND}" -E env PYTHONDONTWRITEBYTECODE=1
            "${Python_EXECUTABLE}" "${script}" ${only} --kernels "${BUTTER_KERNELS}"
            "${BUTTER_GENERATED}/manifest.json" "${references}"
    DEPENDS "${script}" "${PROJECT_SOURCE_DIR}/python/butter/manifest.py" ${sources}
    COMMENT "Running every kernel in Iron's interpreter" VERBATIM)
  add_custom_target(butter_selftest_references ALL DEPENDS "${references}")
  install(FILES "${references}" DESTINATION butter)
endfunction()
