// SPDX-License-Identifier: BSL-1.0
#pragma once

// One question to header, cookie or query, and whether its answer holds what is promised of every
// answer. Shared by the property test, which makes up questions, and the fuzz targets.

#include <string>
#include <string_view>
#include <vector>

#include "reference/fields.hpp"
#include "weir/extract/cookie.hpp"
#include "weir/extract/header.hpp"
#include "weir/extract/missing_key.hpp"
#include "weir/extract/query.hpp"

namespace reference {

/// Lines of a request as one text: `name:value`, divided by the byte 0x1f; a line without colon
/// has the name that is asked for. CR, LF and NUL stay free for values.
inline std::vector<std::pair<std::string, std::string>> lines_from(const std::string& text,
                                                                   const char*        asked)
{
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& line : split(text, '\x1f')) {
        const auto colon = line.find(':');
        if (colon == line.npos) out.emplace_back(asked, line);
        else out.emplace_back(line.substr(0, colon), line.substr(colon + 1));
    }
    return out;
}

inline std::vector<weir::header_line>
views(const std::vector<std::pair<std::string, std::string>>& lines)
{
    std::vector<weir::header_line> out;
    for (const auto& [name, value] : lines) out.push_back({name, value});
    return out;
}

/// The values of the lines whose name is `asked`, which is given in lower case.
inline std::vector<std::string>
values_of(const std::vector<std::pair<std::string, std::string>>& lines, const std::string& asked)
{
    std::vector<std::string> out;
    for (auto [name, value] : lines) {
        for (auto& c : name)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (name == asked) out.push_back(value);
    }
    return out;
}

/// What is wrong with an answer, given what it must be; empty if nothing.
inline std::string wrong_answer(const weir::field& is, const found_field& must_be)
{
    const std::string why(is.why() ? name(*is.why()) : "");
    if (why != must_be.why) return "says '" + why + "', not '" + must_be.why + '\'';
    if (is.bytes() != must_be.value) return "another value";
    if (is.bytes().empty() == static_cast<bool>(is)) return "a value without bytes, or the reverse";
    if (const auto copy = is; copy.bytes() != is.bytes() || copy.why() != is.why())
        return "a copy is another";

    using weir::key_step;
    const bool missing = is.why() == weir::absence::missing;
    const auto counted = is ? key_step::count : key_step::reject;
    if (step_for(is, weir::missing_key::reject) != counted ||
        step_for(is, weir::missing_key::pass) != (missing ? key_step::pass : counted) ||
        step_for(is, weir::missing_key::shared_bucket) != (missing ? key_step::count : counted))
        return "the wrong step";
    return {};
}

inline std::string wrong_header(bool ambiguous_is_missing, const std::string& text)
{
    static const weir::header strict("X-Api-Key");
    static const weir::header lax("X-Api-Key", {.ambiguous_is_missing = true});

    const auto& source = ambiguous_is_missing ? lax : strict;
    const auto  lines  = lines_from(text, "X-Api-Key");
    const auto  seen   = views(lines);
    const auto  found  = source(weir::request(seen, {}));
    const auto  must   = header_field(values_of(lines, "x-api-key"), ambiguous_is_missing);
    if (const auto wrong = wrong_answer(found, must); !wrong.empty()) return wrong;

    const weir::header_line again[] = {{"x-api-key", found.bytes()}};
    return source(weir::request(again, {})).bytes() == found.bytes() ? "" : "not idempotent";
}

inline std::string wrong_cookie(bool ordered, const std::string& text)
{
    static const weir::cookie source("id");

    const auto lines = lines_from(text, "Cookie");
    const auto seen  = views(lines);
    const auto order = ordered ? weir::line_fidelity::in_order : weir::line_fidelity::any_order;
    const auto found = source(weir::request(seen, {.lines = order}));
    const auto must  = cookie_field(values_of(lines, "cookie"), "id", ordered);
    if (const auto wrong = wrong_answer(found, must); !wrong.empty()) return wrong;

    const auto              pair    = "id=" + std::string(found.bytes());
    const weir::header_line again[] = {{"cookie", pair}};
    return source(weir::request(again, {})).bytes() == found.bytes() ? "" : "not idempotent";
}

inline std::string wrong_query(bool plus_is_space, const std::string& target)
{
    static const weir::query form("id 1"), plain("id 1", {.plus_is_space = false});

    const auto& source = plus_is_space ? form : plain;
    const auto  ask    = [&](const std::string& of) {
        return source(weir::request(std::vector<weir::header_line>(), {.target = of}));
    };
    const auto found = ask(target);
    const auto must  = query_field(target, "id 1", plus_is_space);
    if (const auto wrong = wrong_answer(found, must); !wrong.empty()) return wrong;

    std::string again = "/?i%641=no&i%64%201=";
    for (const char c : found.bytes()) {
        again += '%';
        again += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
        again += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
    }
    return ask(again).bytes() == found.bytes() ? "" : "not what its encoding decodes to";
}

}  // namespace reference
