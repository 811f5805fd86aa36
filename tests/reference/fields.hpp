// SPDX-License-Identifier: BSL-1.0
#pragma once

// The value under one name, found slowly and by other means than the library: everything is split
// and copied out first, and only then looked at.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "reference/client_walk.hpp"

namespace reference {

/// `why` as the library names it, empty if there is a value.
struct found_field {
    std::string why   = {};
    std::string value = {};

    friend bool operator==(const found_field&, const found_field&) = default;
};

inline found_field none(const char* why) { return {why, {}}; }

inline found_field some(const std::string& value, std::size_t most)
{
    return value.empty()         ? none("missing")
           : value.size() > most ? none("too_long")
                                 : found_field{{}, value};
}

inline bool breaks_line(const std::string& value)
{
    return value.find_first_of(std::string("\r\n\0", 3)) != value.npos;
}

/// The values of all lines of the header.
inline found_field header_field(const std::vector<std::string>& lines, bool ambiguous_is_missing)
{
    std::set<std::string> values;
    for (const auto& line : lines) values.insert(without_blanks(line));
    if (std::any_of(values.begin(), values.end(), breaks_line)) return none("malformed");
    if (values.size() > 1) return none(ambiguous_is_missing ? "missing" : "ambiguous");
    return values.empty() ? none("missing") : some(*values.begin(), 8192);
}

inline std::vector<std::string> split(const std::string& text, char at)
{
    std::vector<std::string> out;
    std::istringstream       from(text);
    for (std::string part; std::getline(from, part, at);) out.push_back(part);
    return out;
}

/// All lines of the header `Cookie`.
inline found_field cookie_field(const std::vector<std::string>& lines, const std::string& name,
                                bool ordered)
{
    std::vector<std::string> values;  // the first of each line
    std::size_t              pairs = 0;
    bool                     cut   = false;
    for (const auto& line : lines) {
        bool found = false;
        for (const auto& pair : split(line, ';')) {
            if (found || (ordered && !values.empty())) break;
            cut               = cut || pairs == 1000;
            const auto equals = pair.find('=');
            if (cut) break;
            found = equals != pair.npos && without_blanks(pair.substr(0, equals)) == name;
            if (found) values.push_back(without_blanks(pair.substr(equals + 1)));
            else ++pairs;
        }
    }
    if (std::set<std::string>(values.begin(), values.end()).size() > 1) return none("ambiguous");
    if (cut) return none("too_long");
    if (values.empty()) return none("missing");
    return breaks_line(values[0]) ? none("malformed") : some(values[0], 8192);
}

inline std::string percent_decoded(const std::string& text, bool plus_is_space)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digits = text.substr(i + 1, 2);
        const auto odd    = digits.find_first_not_of("0123456789abcdefABCDEF");
        const bool hex    = digits.size() == 2 && odd == digits.npos;
        if (text[i] == '%' && hex) {
            out += static_cast<char>(std::strtol(digits.c_str(), nullptr, 16));
            i += 2;
        } else {
            out += text[i] == '+' && plus_is_space ? ' ' : text[i];
        }
    }
    return out;
}

inline found_field query_field(std::string target, const std::string& name, bool plus_is_space)
{
    if (const auto hash = target.find('#'); hash != target.npos) target.resize(hash);
    const auto mark = target.find('?');
    if (mark == target.npos) return none("missing");

    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& pair : split(target.substr(mark + 1), '&')) {
        const auto equals = pair.find('=');
        all.emplace_back(
            percent_decoded(pair.substr(0, equals), plus_is_space),
            equals == pair.npos ? "" : percent_decoded(pair.substr(equals + 1), plus_is_space));
    }
    const auto first =
        std::find_if(all.begin(), all.end(), [&](const auto& pair) { return pair.first == name; });
    if (std::min(first - all.begin(), all.end() - all.begin()) >= 1000 && all.size() > 1000)
        return none("too_long");
    return first == all.end() ? none("missing") : some(first->second, 1024);
}

}  // namespace reference
