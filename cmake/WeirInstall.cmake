# SPDX-License-Identifier: BSL-1.0

# Headers, a CMake package with one export file per component, pkg-config files, the licence.
# Nothing installed holds an absolute path: the tree may be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weir_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
set(weir_pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
get_property(weir_components GLOBAL PROPERTY weir_components)

foreach(component IN LISTS weir_components)
    install(TARGETS weir_${component} EXPORT weir_${component}
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT weir_${component} NAMESPACE weir::
        DESTINATION "${weir_package_dir}" FILE weir-${component}-targets.cmake)
endforeach()

configure_package_config_file(
    "${PROJECT_SOURCE_DIR}/cmake/weir-config.cmake.in" "${PROJECT_BINARY_DIR}/weir-config.cmake"
    INSTALL_DESTINATION "${weir_package_dir}"
    NO_SET_AND_CHECK_MACRO)
set(weir_any_machine ARCH_INDEPENDENT)
if(WEIR_HTTP OR WEIR_JA4 OR WEIR_FORMS OR WEIR_SQLITE OR WEIR_POSTGRES)
    set(weir_any_machine "")  # not headers only
endif()
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weir-config-version.cmake"
    COMPATIBILITY SameMinorVersion ${weir_any_machine})
install(
    FILES "${PROJECT_BINARY_DIR}/weir-config.cmake" "${PROJECT_BINARY_DIR}/weir-config-version.cmake"
    DESTINATION "${weir_package_dir}")
if(WEIR_HTTP)
    install(FILES "${PROJECT_SOURCE_DIR}/cmake/FindRE2.cmake" DESTINATION "${weir_package_dir}")
endif()

# pkg-config replaces ${pcfiledir} by the folder of the file, so the way up from there is enough.
file(RELATIVE_PATH weir_prefix_from_pc
    "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" weir_prefix_from_pc "${weir_prefix_from_pc}")
set(weir_pkgconfig_files weir)
foreach(part http ja4 forms sqlite postgres)
    string(TOUPPER "WEIR_${part}" option)
    if(${option})
        list(APPEND weir_pkgconfig_files weir-${part})
    endif()
endforeach()
foreach(file IN LISTS weir_pkgconfig_files)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${file}.pc.in" "${PROJECT_BINARY_DIR}/${file}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${file}.pc" DESTINATION "${weir_pkgconfig_dir}")
endforeach()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
