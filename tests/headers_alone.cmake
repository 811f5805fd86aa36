# SPDX-License-Identifier: BSL-1.0

# Each public header compiles when it is the only one included, and twice is as good as once; the
# same for users who build without exceptions and RTTI. The compiling is the test: it is no part of
# the ordinary build.

# weir_headers_alone(<suffix> <component> OPTIONS <flag>... LINKS <target>...)
function(weir_headers_alone suffix component)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "OPTIONS;LINKS")
    get_target_property(headers weir_${component} HEADER_SET)
    list(FILTER headers INCLUDE REGEX "\\.hpp$")
    set(sources "")
    foreach(header IN LISTS headers)
        string(REGEX REPLACE "^.*/include/weir/" "weir/" header "${header}")
        set(source "${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.cpp")
        file(CONFIGURE OUTPUT "${source}"
            CONTENT "#include \"@header@\"\n#include \"@header@\"  // guarded\n" @ONLY)
        list(APPEND sources "${source}")
    endforeach()
    if(NOT sources)
        return()
    endif()
    set(target weir_headers_${component}_${suffix})
    add_library(${target} OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${target} PRIVATE weir::${component} ${arg_LINKS})
    target_compile_options(${target} PRIVATE ${arg_OPTIONS})
    weir_strict(${target})

    set(test "house: headers of ${component} compile alone, ${suffix}")
    add_test(NAME "${test}" COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}" --target ${target})
    # One build at a time in one build folder.
    set_tests_properties("${test}" PROPERTIES LABELS house RESOURCE_LOCK build_folder TIMEOUT 600)
endfunction()

weir_headers_alone(plain core)
weir_headers_alone(plain httplib LINKS PkgConfig::cpp-httplib)
find_package(Boost 1.81)
if(Boost_FOUND)  # Debian: libboost1.81-dev
    weir_headers_alone(plain beast LINKS Boost::headers)
    weir_headers_alone(plain asio LINKS Boost::headers)
endif()
foreach(component http config ja4 forms remote sqlite postgres)
    if(TARGET weir::${component})
        weir_headers_alone(plain ${component})
    endif()
endforeach()
weir_headers_alone(without_exceptions_and_rtti core OPTIONS -fno-exceptions -fno-rtti)
