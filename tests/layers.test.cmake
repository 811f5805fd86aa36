# SPDX-License-Identifier: BSL-1.0

# Fails on an include that points upward.
#   cmake -D ROOT=<source folder> -D SCRATCH=<folder for the self-check> -P layers.test.cmake
cmake_minimum_required(VERSION 3.25)

# a -> b: a may include b and all that b may include; within a layer everybody may include anybody.
# A header's layer is its first folder below weir/, or its own name where it stands in none; an
# edge for a single header in a folder names it in full.
set(edges
    "invalid          ->"
    "pages            ->"
    "published        ->"
    "sip_hash         ->"
    "time             ->"
    "version          ->"
    "warning          ->"
    "key              -> invalid sip_hash time"
    "token_use        -> key"
    "count_min_sketch -> key pages"
    "decision         -> time"
    "pending          -> key decision"
    "reservation      -> key decision"
    "admit_all        -> pending"
    "policy           -> key decision"
    "store            -> policy count_min_sketch warning"
    "pending_steps    -> store pending"
    "enquiry          -> store published"
    "limiter          -> enquiry pending_steps reservation"
    "inflight         -> key decision"
    "remote           -> store"
    "extract          -> key warning"
    "distinct         -> limiter admit_all"
    "http             -> extract limiter inflight admit_all"
    "forms            -> key time token_use"
    "config           -> http"
    "adapt            -> extract http"
    "adapt/asio       -> adapt remote"
    "signin           -> admit_all limiter extract"
    "testing          -> limiter"
    "postgres         -> remote store pending token_use"
    "sqlite           -> remote store token_use"
    "redis            -> remote store"
    "weir             -> version admit_all limiter inflight extract http"
)

# `reach_<layer>`: all that a layer may include, itself among it. An edge names layers above it, so
# one pass is enough, and a circle cannot be written down.
foreach(edge IN LISTS edges)
    string(REGEX MATCHALL "[a-z_/]+" names "${edge}")
    list(POP_FRONT names layer)
    set(reach_${layer} ${layer})
    foreach(below IN LISTS names)
        if(NOT DEFINED reach_${below})
            message(FATAL_ERROR "layers: the edge of ${layer} names ${below}, which has none above it")
        endif()
        list(APPEND reach_${layer} ${reach_${below}})
    endforeach()
endforeach()

# The layer of "weir/<path>".
function(layer_of path out)
    string(REGEX REPLACE "^weir/|\\.[a-z]+$" "" name "${path}")
    if(NOT DEFINED reach_${name})
        string(REGEX REPLACE "/.*" "" name "${name}")
    endif()
    set(${out} "${name}" PARENT_SCOPE)
endfunction()

# All includes below `root` that no edge allows, as "<file> includes <header>".
function(upward_includes root out)
    set(found "")
    file(GLOB_RECURSE files RELATIVE "${root}"
        "${root}/include/*.[hi]pp" "${root}/src/*.[hc]pp" "${root}/backends/*.[hic]pp")
    list(FILTER files EXCLUDE REGEX "^backends/[^/]+/tests/")
    foreach(file IN LISTS files)
        string(REGEX REPLACE "^(include/|src/|backends/[^/]+/include/)(weir/)?" "weir/" here "${file}")
        string(REGEX REPLACE "^backends/([^/]+)/src/" "weir/\\1/" here "${here}")
        layer_of("${here}" layer)
        if(NOT DEFINED reach_${layer})
            list(APPEND found "${file} is in no layer")
            continue()
        endif()
        file(STRINGS "${root}/${file}" includes REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<weir/)")
        foreach(line IN LISTS includes)
            string(REGEX REPLACE "^[^\"<]*[\"<]([^\">]*).*" "\\1" header "${line}")
            if(file MATCHES "^src/" AND header MATCHES "^[a-z_]+\\.hpp$")
                continue()  # a neighbour that is not public
            endif()
            layer_of("${header}" target)
            if(NOT header MATCHES "^weir/" OR NOT target IN_LIST reach_${layer})
                list(APPEND found "${file} includes ${header}")
            endif()
        endforeach()
    endforeach()
    set(${out} "${found}" PARENT_SCOPE)
endfunction()

# First the check itself: a small tree whose faults are known.
file(REMOVE_RECURSE "${SCRATCH}")
set(sample "include/weir/limiter.hpp|weir/store/memory.hpp" "include/weir/store/memory.hpp|weir/key.hpp"
    "include/weir/adapt/asio.hpp|weir/remote/batch.hpp" "include/weir/adapt/beast.hpp|weir/remote/batch.hpp"
    "include/weir/time.hpp|weir/limiter.hpp"            "include/weir/extract/ja4.hpp|../limiter.hpp"
    "include/weir/stray.hpp|weir/time.hpp"              "src/http/refusal.cpp|weir/config/toml.hpp"
    "backends/redis/src/script.cpp|weir/postgres/store.hpp"
    "backends/sqlite/include/weir/sqlite/store.hpp|weir/remote/digest.hpp")
foreach(pair IN LISTS sample)
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 file)
    list(GET pair 1 header)
    file(WRITE "${SCRATCH}/${file}" "#pragma once\n#include \"${header}\"\n")
endforeach()
set(expected
    "backends/redis/src/script.cpp includes weir/postgres/store.hpp"
    "include/weir/adapt/beast.hpp includes weir/remote/batch.hpp"
    "include/weir/extract/ja4.hpp includes ../limiter.hpp"
    "include/weir/stray.hpp is in no layer"
    "include/weir/time.hpp includes weir/limiter.hpp"
    "src/http/refusal.cpp includes weir/config/toml.hpp")
upward_includes("${SCRATCH}" found)
list(SORT found)
if(NOT found STREQUAL expected)
    message(FATAL_ERROR "layers: the check is broken: it found\n${found}\nand not\n${expected}")
endif()

upward_includes("${ROOT}" found)
if(found)
    list(JOIN found "\n  " found)
    message(FATAL_ERROR "layers: these point upward:\n  ${found}")
endif()
