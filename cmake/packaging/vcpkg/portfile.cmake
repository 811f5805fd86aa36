# An overlay port that builds the checkout it stands in:
#   vcpkg install weir --overlay-ports=<checkout>/cmake/packaging
cmake_path(SET SOURCE_PATH NORMALIZE "${CURRENT_PORT_DIR}/../../..")

foreach(part http ja4 forms sqlite postgres)
    set(${part} OFF)
    if(part IN_LIST FEATURES)
        set(${part} ON)
    endif()
endforeach()
if(NOT http AND NOT ja4 AND NOT forms AND NOT sqlite AND NOT postgres)
    set(VCPKG_BUILD_TYPE release)  # headers only: there is nothing to debug in what is installed
endif()

vcpkg_cmake_configure(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS -DWEIR_TESTS=OFF -DWEIR_BENCH=OFF -DWEIR_EXAMPLES=OFF -DWEIR_INSTALL=ON
        -DWEIR_HTTP=${http} -DWEIR_JA4=${ja4} -DWEIR_FORMS=${forms}
        -DWEIR_SQLITE=${sqlite} -DWEIR_POSTGRES=${postgres})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/weir)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")

vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
