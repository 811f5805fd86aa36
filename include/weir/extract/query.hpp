// SPDX-License-Identifier: BSL-1.0
#pragma once

// The value of one query parameter as a key: a token in a link. Its client can change it with every
// request, so count by it only what the application has verified; see docs/keys.md.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "weir/extract/address.hpp"
#include "weir/extract/field.hpp"
#include "weir/extract/forwarded.hpp"
#include "weir/extract/request.hpp"
#include "weir/invalid.hpp"

namespace weir {

struct query_options {
    /// `+` is a space, as HTML forms write it and most servers read it. Set it as the application
    /// reads it: otherwise `a+b` and `a%20b` (or `a%2Bb`), one value to it, are two keys.
    bool plus_is_space = true;
};

/// Reads one parameter of the query of a request:
///
///     weir::query token("token");
///     per_token.admit(token(request));
///
/// Immutable, hence thread-safe.
class query {
public:
    static constexpr std::size_t most_bytes = field::room;  ///< The longest value, decoded.
    static constexpr std::size_t most_pairs = 1000;         ///< Read of a query.

    /// The name as it is when decoded; any bytes. Throws std::invalid_argument if it is empty.
    explicit query(std::string name, const query_options& options = {})
        : name_(std::move(name)), options_(options)
    {
        if (name_.empty()) detail::invalid("query: the name is empty; allowed is any other");
    }

    /// The first parameter of this name in `request::target`, even if it is empty and a later one
    /// is not. The query is what stands between the first `?` and the first `#`; pairs are cut at
    /// `&` (not at `;`) and at their first `=`.
    ///
    /// Names and values are percent-decoded once, names because otherwise `%74oken` would be a
    /// token to the application and none to us. A `%` without two hex digits stands for itself, as
    /// in the URL standard's percent-decode: there is nothing to refuse. Any byte may come out, NUL
    /// included. A name that is not among the first `most_pairs` is too long. Borrows from the
    /// request unless decoding changes the value; linear in the bytes of the query; no allocation.
    [[nodiscard]] field operator()(const request& from) const noexcept;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }

private:
    bool  is_name(std::string_view written) const noexcept;
    field value(std::string_view written) const noexcept;

    std::string   name_;
    query_options options_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

constexpr std::string_view query_of(std::string_view target) noexcept
{
    target          = target.substr(0, target.find('#'));
    const auto mark = target.find('?');
    return mark == target.npos ? std::string_view() : target.substr(mark + 1);
}

/// Takes what stands for one byte off a text that is not empty.
constexpr char take_decoded(std::string_view& text, bool plus_is_space) noexcept
{
    const char first = take(text, 1)[0];
    if (first == '+' && plus_is_space) return ' ';
    const int byte = first == '%' && text.size() >= 2 ? hex_group(text.substr(0, 2)) : -1;
    if (byte < 0) return first;
    text.remove_prefix(2);
    return static_cast<char>(byte);
}

}  // namespace detail

inline field query::operator()(const request& from) const noexcept
{
    auto rest = detail::query_of(from.target());
    for (std::size_t pairs = 0; !rest.empty(); ++pairs) {
        if (pairs == most_pairs) return field(absence::too_long);
        const auto pair = detail::take(rest, rest.find('&'));
        rest.remove_prefix(rest.empty() ? 0 : 1);
        const auto equals = pair.find('=');
        if (!is_name(pair.substr(0, equals))) continue;
        return equals == pair.npos ? field() : value(pair.substr(equals + 1));
    }
    return field();
}

inline bool query::is_name(std::string_view written) const noexcept
{
    for (const char c : name_)
        if (written.empty() || detail::take_decoded(written, options_.plus_is_space) != c)
            return false;
    return written.empty();
}

inline field query::value(std::string_view written) const noexcept
{
    const auto changes = [&](char c) { return c == '%' || (c == '+' && options_.plus_is_space); };
    if (std::ranges::none_of(written, changes)) return field(written, most_bytes);
    field out;
    while (!written.empty() && out.why() != absence::too_long)
        out.append(detail::take_decoded(written, options_.plus_is_space));
    return out;
}

}  // namespace weir
