# SPDX-License-Identifier: BSL-1.0

# All of sql/ in the order in which it must run, as one text: a constant, so that the library needs
# no file at run time, and a file for whoever runs it by hand. Each policy that has a spend/*.sql
# gets copies of ask.sql and ask_one.sql of its own.
function(weir_postgres_texts)
    set(folder "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sql")
    file(GLOB policies CONFIGURE_DEPENDS "${folder}/spend/*.sql")
    list(TRANSFORM policies REPLACE ".*/(.+)\\.sql$" "\\1")

    set(names schema)
    foreach(policy IN LISTS policies)
        list(APPEND names "spend/${policy}")
    endforeach()
    foreach(policy IN LISTS policies)
        list(APPEND names "ask:${policy}" "ask_one:${policy}")
    endforeach()
    list(APPEND names look forget admit_set sweep marked version)

    set(whole "")
    set(literals "")
    foreach(name IN LISTS names)
        string(REGEX REPLACE ":.*" "" file "${name}")
        string(REGEX REPLACE ".*:" "" policy "${name}")
        file(READ "${folder}/${file}.sql" text)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${file}.sql")
        string(REPLACE "{policy}" "${policy}" text "${text}")
        string(STRIP "${text}" text)
        string(APPEND whole "\n\n${text}")
        # One literal a file: a compiler need not take one of more than 64 KiB, and some less.
        string(APPEND literals "\n    R\"sql(${text}\n\n)sql\"")
    endforeach()

    string(STRIP "${whole}" whole)
    set(weir_postgres_schema "${literals}")
    # What stands beside the store, each on its own: calendar and spent_tokens.
    set(weir_postgres_others "")
    foreach(name calendar spent_tokens)
        file(READ "${folder}/${name}.sql" text)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${name}.sql")
        string(APPEND weir_postgres_others "inline constexpr char ${name}[] = R\"sql(${text})sql\";\n")
    endforeach()

    configure_file("${folder}/../texts.hpp.in"
        "${CMAKE_CURRENT_BINARY_DIR}/generated/weir/postgres/texts.hpp" @ONLY)
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/weir-postgres.sql"
        CONTENT "@whole@" @ONLY NEWLINE_STYLE UNIX)
endfunction()

weir_postgres_texts()
set(weir_postgres_sql "${CMAKE_CURRENT_BINARY_DIR}/weir-postgres.sql")
if(WEIR_INSTALL)
    include(GNUInstallDirs)
    install(FILES "${weir_postgres_sql}" DESTINATION "${CMAKE_INSTALL_DATADIR}/weir")
    foreach(name calendar spent_tokens)
        install(FILES "${CMAKE_CURRENT_SOURCE_DIR}/sql/${name}.sql"
            DESTINATION "${CMAKE_INSTALL_DATADIR}/weir" RENAME "weir-postgres-${name}.sql")
    endforeach()
endif()
