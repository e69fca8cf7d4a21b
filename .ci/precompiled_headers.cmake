# Reads the large headers once instead of some hundred times: about a third of what clang does to compile attest.
#
# In CI only (CMakeLists.txt), where everything is compiled once from nothing: objects made so cannot be shared between
# folders by ccache. What a file includes is still judged there, as g++ compiles all of them without this.
#
#   attest_precompile_headers(<folder>)     every target of ours in the folder and those below

set(precompiled_anywhere
  <algorithm> <array> <atomic> <bit> <chrono> <cmath> <cstdint> <cstdio> <cstring> <filesystem> <fstream> <functional> <limits>
  <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <stdexcept> <string> <string_view> <thread>
  <type_traits> <unordered_map> <utility> <variant> <vector> <Eigen/Core> <fmt/format.h> <nlohmann/json.hpp> <rapidcheck.h>)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/precompiled.cpp CONTENT "")
# One for libraries and one for tests, which differ in -fPIC and -fPIE.
add_library(attest_precompiled_library OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
target_precompile_headers(attest_precompiled_library PRIVATE ${precompiled_anywhere})
add_library(attest_precompiled_test OBJECT ${CMAKE_BINARY_DIR}/precompiled.cpp)
target_precompile_headers(attest_precompiled_test PRIVATE ${precompiled_anywhere} <catch2/catch.hpp>)
set_target_properties(attest_precompiled_test PROPERTIES POSITION_INDEPENDENT_CODE OFF)
target_compile_options(attest_precompiled_test PRIVATE -fPIE)
foreach(target attest_precompiled_library attest_precompiled_test)
  target_link_libraries(${target} PRIVATE attest_options Eigen3::Eigen rapidcheck)
endforeach()

function(attest_precompile_headers folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(linked ${target} LINK_LIBRARIES)
    get_target_property(options ${target} COMPILE_OPTIONS)
    # Other options make another language to clang, for a target (the simulator's SIMD levels) or for one source.
    if(target MATCHES "^attest_precompiled_" OR options OR NOT "attest_options" IN_LIST linked)
      continue()
    elseif(type MATCHES "LIBRARY")
      target_precompile_headers(${target} REUSE_FROM attest_precompiled_library)
    elseif("Catch2::Catch2WithMain" IN_LIST linked)
      target_precompile_headers(${target} REUSE_FROM attest_precompiled_test)
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(room ${target} SOURCE_DIR)
    foreach(source ${sources})
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${room})
      get_source_file_property(source_options ${source} TARGET_DIRECTORY ${target} COMPILE_OPTIONS)
      if(source_options)
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endforeach()
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(sub ${below})
    attest_precompile_headers(${sub})
  endforeach()
endfunction()
