# SPDX-License-Identifier: BSL-1.0

# weir_component(<name> [FOLDERS <folder>...] [HEADERS <file>...] [LINKS <component>...])
#
# A header-only part of the library: the target weir_<name>, known to everybody as weir::<name>.
# Folders and files are named from include/weir. All headers of a folder belong, looked up again at
# every build, because a header that a list forgot would be missing only in the installed package.
function(weir_component name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;HEADERS;LINKS")
    list(TRANSFORM arg_FOLDERS APPEND "/*.[hi]pp")
    set(headers ${arg_FOLDERS} ${arg_HEADERS})
    list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/include/weir/")
    list(TRANSFORM headers REPLACE "/\\./" "/")
    file(GLOB headers CONFIGURE_DEPENDS ${headers})
    list(TRANSFORM arg_LINKS PREPEND "weir::")

    add_library(weir_${name} INTERFACE)
    add_library(weir::${name} ALIAS weir_${name})
    set_target_properties(weir_${name} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(weir_${name} INTERFACE cxx_std_20)
    target_link_libraries(weir_${name} INTERFACE ${arg_LINKS})
    target_sources(weir_${name} INTERFACE
        FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})

    set_property(GLOBAL APPEND PROPERTY weir_components ${name})
endfunction()
