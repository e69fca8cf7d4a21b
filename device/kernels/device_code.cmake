# Compiling HIP to code objects: an ELF that hipModuleLoadData takes, without a host program around it.
#
#   attest_code_object(<name> SOURCE <file.hip> [DEFINES <macro>...] [FLAGS <flag>...])    -> ${ATTEST_KERNEL_DIR}/<name>.co
#
# ROCm's compiler is used when ROCm >= 6 is there, else clang 19 with Debian's HIP headers and device libraries.

set(ATTEST_KERNEL_ARCH gfx942 CACHE STRING "Architecture that the kernels are compiled for")
set(ATTEST_KERNEL_DIR ${CMAKE_BINARY_DIR}/kernels)
set(ATTEST_DEVICE_COMPILER "" CACHE FILEPATH "clang that compiles HIP; empty: ROCm's, else clang++-19")

set(rocm_roots $ENV{ROCM_PATH} /opt/rocm)
if(NOT ATTEST_DEVICE_COMPILER)
  foreach(root ${rocm_roots})
    if(EXISTS ${root}/.info/version)
      file(READ ${root}/.info/version rocm_version)
      string(STRIP "${rocm_version}" rocm_version)
      find_program(ATTEST_ROCM_CLANG NAMES amdclang++ clang++ HINTS ${root}/llvm/bin ${root}/bin NO_DEFAULT_PATH)
      if(rocm_version VERSION_GREATER_EQUAL 6 AND ATTEST_ROCM_CLANG)
        set(device_compiler ${ATTEST_ROCM_CLANG})
        set(device_flags --rocm-path=${root})
        set(device_compiler_is "ROCm ${rocm_version}")
        break()
      endif()
    endif()
  endforeach()
else()
  set(device_compiler ${ATTEST_DEVICE_COMPILER})
  set(device_compiler_is "given")
endif()

if(NOT device_compiler)
  find_program(ATTEST_CLANG NAMES clang++-19 REQUIRED)
  set(device_compiler ${ATTEST_CLANG})
  set(device_compiler_is "clang 19 with Debian's HIP")

  # Debian 12's device libraries are older than gfx942 and lack the module that names the architecture: one constant.
  # A directory of links plus that module, in the build tree, completes them.
  find_path(ATTEST_DEVICE_LIBS ockl.bc REQUIRED
    PATHS /usr/lib/x86_64-linux-gnu/amdgcn/bitcode /usr/lib/amdgcn/bitcode /usr/lib/clang/19/amdgcn/bitcode)
  set(libs ${CMAKE_CURRENT_BINARY_DIR}/device_libs)
  file(MAKE_DIRECTORY ${libs})
  file(GLOB modules ${ATTEST_DEVICE_LIBS}/*.bc)
  foreach(module ${modules})
    get_filename_component(file ${module} NAME)
    file(CREATE_LINK ${module} ${libs}/${file} SYMBOLIC)
  endforeach()
  if(NOT EXISTS ${ATTEST_DEVICE_LIBS}/oclc_isa_version_942.bc)
    find_program(ATTEST_LLVM_AS NAMES llvm-as-19 REQUIRED)
    set(constant ${CMAKE_CURRENT_BINARY_DIR}/oclc_isa_version_942.ll)
    # 9402 is major 9, minor 4, stepping 2, as in ROCm's device libraries (oclc/src/isa_version_*.cl).
    file(WRITE ${constant}
      "target datalayout = \"e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9\"\n"
      "target triple = \"amdgcn-amd-amdhsa\"\n"
      "@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 9402, align 4\n")
    execute_process(COMMAND ${ATTEST_LLVM_AS} ${constant} -o ${libs}/oclc_isa_version_942.bc
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(device_flags --rocm-path=/usr --rocm-device-lib-path=${libs})
endif()
message(STATUS "Device code for ${ATTEST_KERNEL_ARCH}: ${device_compiler} (${device_compiler_is})")

# What reports say the kernels were made with: the compiler's own words, HIP's headers, the device libraries' package.
execute_process(COMMAND ${device_compiler} --version OUTPUT_VARIABLE device_compiler_says)
string(REGEX MATCH "[^\n]+" ATTEST_DEVICE_CODE_BY "${device_compiler_says}")
if(rocm_version AND NOT ATTEST_DEVICE_COMPILER)
  string(APPEND ATTEST_DEVICE_CODE_BY ", ROCm ${rocm_version}")
endif()
foreach(root ${rocm_roots} /usr)
  if(EXISTS ${root}/include/hip/hip_version.h)
    file(STRINGS ${root}/include/hip/hip_version.h hip_version REGEX "define HIP_VERSION_(MAJOR|MINOR|PATCH) ")
    string(REGEX REPLACE "[^0-9]+" "." hip_version "${hip_version}")
    string(REGEX REPLACE "^\\.|\\.$" "" hip_version "${hip_version}")
    string(APPEND ATTEST_DEVICE_CODE_BY ", HIP headers ${hip_version}")
    break()
  endif()
endforeach()
find_program(ATTEST_DPKG_QUERY dpkg-query)
if(ATTEST_DPKG_QUERY AND NOT rocm_version)
  execute_process(COMMAND ${ATTEST_DPKG_QUERY} -W -f ", \${Package} \${Version}" rocm-device-libs
    OUTPUT_VARIABLE device_libs_package ERROR_QUIET)
  string(APPEND ATTEST_DEVICE_CODE_BY "${device_libs_package}")
endif()
set(ATTEST_DEVICE_CODE_BY "${ATTEST_DEVICE_CODE_BY}" CACHE INTERNAL "Compiler, HIP headers and device libraries of the kernels")

list(APPEND device_flags
  -x hip --offload-arch=${ATTEST_KERNEL_ARCH} --offload-device-only --no-gpu-bundle-output
  -O3 -std=c++20 -Wall -Wextra -I${PROJECT_SOURCE_DIR}
  # The kernels ask for registers as if two waves shared a SIMD (see the end of mla_decode.hip); their LDS allows one.
  -Wno-pass-failed)
if(ATTEST_DEVELOPER)
  list(APPEND device_flags -Werror)
endif()

file(MAKE_DIRECTORY ${ATTEST_KERNEL_DIR})
function(attest_code_object name)
  if(NOT ATTEST_DEVICE_CODE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "SOURCE" "DEFINES;FLAGS" ${ARGN})
  get_filename_component(source ${ARG_SOURCE} ABSOLUTE)
  set(object ${ATTEST_KERNEL_DIR}/${name}.co)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  set(defines)
  foreach(define ${ARG_DEFINES})
    list(APPEND defines -D${define})
  endforeach()
  add_custom_command(OUTPUT ${object}
    COMMAND ${device_compiler} ${device_flags} ${ARG_FLAGS} ${defines} -MD -MF ${object}.d -MT ${object} -o ${object} ${source}
    DEPENDS ${source} DEPFILE ${object}.d
    COMMENT "Compiling ${name}.co for ${ATTEST_KERNEL_ARCH}" VERBATIM)
  set_property(GLOBAL APPEND PROPERTY ATTEST_CODE_OBJECTS ${object})
endfunction()
