# SPDX-License-Identifier: BSL-1.0

# weir_strict(<target>): the bare standard and warnings as errors, for what we build ourselves.
# Never on a target that a consumer links: their compiler may know a warning that ours does not.
function(weir_strict target)
    set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror
        # GCC 12 sees overlaps in "text" + std::string that are not there (its bug 105651).
        $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
endfunction()
