// SPDX-License-Identifier: BSL-1.0

// application/x-www-form-urlencoded as browsers write it (WHATWG URL, section 5.1).

#include "body/fields.hpp"

#include <optional>

namespace forms {

namespace {

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// A plus is a space. A percent sign without two digits behind it is itself, as browsers have it.
std::string decoded(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool two  = text[i] == '%' && i + 2 < text.size();
        const int  high = two ? hex_digit(text[i + 1]) : -1;
        const int  low  = two ? hex_digit(text[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            out += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            out += text[i] == '+' ? ' ' : text[i];
        }
    }
    return out;
}

}  // namespace

std::vector<field> read_urlencoded(std::string_view body)
{
    std::vector<field> fields;
    while (!body.empty()) {
        const auto pair = body.substr(0, body.find('&'));
        body.remove_prefix(pair.size() < body.size() ? pair.size() + 1 : body.size());
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        const auto value  = equals == pair.npos ? std::string_view() : pair.substr(equals + 1);
        add_field(fields, {.name = decoded(pair.substr(0, equals)), .value = decoded(value)});
    }
    return fields;
}

}  // namespace forms
