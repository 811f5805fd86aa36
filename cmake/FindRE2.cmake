# SPDX-License-Identifier: BSL-1.0

# RE2, by its own CMake package where there is one, else by pkg-config (Debian has no package for
# CMake): the target re2::re2 in both cases.
if(NOT TARGET re2::re2)
    find_package(re2 CONFIG QUIET)
endif()
if(NOT TARGET re2::re2)
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
        pkg_check_modules(RE2 QUIET IMPORTED_TARGET GLOBAL re2)
    endif()
    if(TARGET PkgConfig::RE2)
        add_library(re2::re2 INTERFACE IMPORTED GLOBAL)
        target_link_libraries(re2::re2 INTERFACE PkgConfig::RE2)
    endif()
endif()
set(RE2_FOUND FALSE)
if(TARGET re2::re2)
    set(RE2_FOUND TRUE)
elseif(RE2_FIND_REQUIRED)
    message(FATAL_ERROR "RE2 is not there: neither re2Config.cmake nor re2.pc (Debian: libre2-dev)")
endif()
