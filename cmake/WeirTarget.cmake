# SPDX-License-Identifier: BSL-1.0

# weir_component(<name> [BACKEND <folder>] [FOLDERS <folder>...] [HEADERS <file>...]
#                [SOURCES <file>...] [LINKS <component>...] [NEEDS <target>...])
#
# A part of the library: the target weir_<name>, known to everybody as weir::<name>. Without SOURCES
# it is headers only. Folders and headers are named from include/weir, sources from src; those of a
# backend lie in backends/<folder>/include and src, all its headers belong. All headers of a folder
# belong, looked up again at every build, because a header that a list forgot would be missing only
# in the installed package. NEEDS: what the sources alone use of others.
function(weir_component name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "BACKEND" "FOLDERS;HEADERS;SOURCES;LINKS;NEEDS")
    set(root "${PROJECT_SOURCE_DIR}")
    if(arg_BACKEND)
        set(root "${PROJECT_SOURCE_DIR}/backends/${arg_BACKEND}")
        set(arg_FOLDERS ${arg_BACKEND})
    endif()
    list(TRANSFORM arg_FOLDERS APPEND "/*.[hi]pp")
    set(headers ${arg_FOLDERS} ${arg_HEADERS})
    list(TRANSFORM headers PREPEND "${root}/include/weir/")
    list(TRANSFORM headers REPLACE "/\\./" "/")
    file(GLOB headers CONFIGURE_DEPENDS ${headers})
    list(TRANSFORM arg_SOURCES PREPEND "${root}/src/")
    list(TRANSFORM arg_LINKS PREPEND "weir::")

    if(arg_SOURCES)
        set(scope PUBLIC)
        add_library(weir_${name} ${arg_SOURCES})
        target_link_libraries(weir_${name} PRIVATE ${arg_NEEDS})
        set_target_properties(weir_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
        if(WEIR_TESTS)  # not for a consumer, whose compiler may know a warning that ours does not
            weir_strict(weir_${name})
        endif()
    else()
        set(scope INTERFACE)
        add_library(weir_${name} INTERFACE)
    endif()
    add_library(weir::${name} ALIAS weir_${name})
    set_target_properties(weir_${name} PROPERTIES EXPORT_NAME ${name})
    target_compile_features(weir_${name} ${scope} cxx_std_20)
    target_link_libraries(weir_${name} ${scope} ${arg_LINKS})
    target_sources(weir_${name} ${scope}
        FILE_SET HEADERS BASE_DIRS "${root}/include" FILES ${headers})

    set_property(GLOBAL APPEND PROPERTY weir_components ${name})
endfunction()
