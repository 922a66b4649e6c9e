# Compiles every generated kernel file once for each instruction set; the runtime picks one at load.

# Contraction would make results depend on the instruction set: a kernel says fma where it means it.
# Loops are vectors already, so -O3 only doubles the time to compile.
set(kernel_options -O2 -ffp-contract=off -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns about its own undefined-vector intrinsics.
  list(APPEND kernel_options -Wno-maybe-uninitialized)
endif()

function(butter_cpu_kernels objects)
  file(GLOB kernels CONFIGURE_DEPENDS "${BUTTER_GENERATED}/cpu/*.cpp")
  file(GLOB bf16_kernels CONFIGURE_DEPENDS "${BUTTER_GENERATED}/cpu_bf16/*.cpp")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(isas base v3 v4 v4_bf16)
    set(flags_base -march=x86-64)
    set(flags_v3 -march=x86-64-v3)
    set(flags_v4 -march=x86-64-v4 -mavx512vnni)
    set(flags_v4_bf16 ${flags_v4} -mavx512bf16)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(isas neon dotprod)
    set(flags_neon -march=armv8-a)
    set(flags_dotprod -march=armv8.2-a+dotprod+fp16)
  else()
    message(FATAL_ERROR "Butter's CPU back end knows x86-64 and arm64, not ${CMAKE_SYSTEM_PROCESSOR}.")
  endif()

  set(all "")
  foreach(isa IN LISTS isas)
    if(isa MATCHES "_bf16$")  # the other kernels are those of the set without it
      add_library(butter_kernels_${isa} OBJECT ${bf16_kernels})
    else()
      add_library(butter_kernels_${isa} OBJECT ${kernels})
    endif()
    butter_compile(butter_kernels_${isa})
    target_compile_definitions(butter_kernels_${isa} PRIVATE BUTTER_ISA=${isa})
    target_compile_options(butter_kernels_${isa} PRIVATE ${kernel_options} ${flags_${isa}})
    list(APPEND all $<TARGET_OBJECTS:butter_kernels_${isa}>)
  endforeach()
  set(${objects} "${all}" PARENT_SCOPE)
endfunction()
