// SPDX-License-Identifier: BSL-1.0
#pragma once

// The value of one cookie as a key: a session. Its client can change it with every request, so
// count by it only what the application has verified; see docs/keys.md.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/extract/field.hpp"
#include "weir/extract/forwarded.hpp"
#include "weir/extract/request.hpp"
#include "weir/invalid.hpp"

namespace weir {

/// Reads one cookie of a request:
///
///     weir::cookie session("session");
///     per_session.admit(session(request));
///
/// Immutable, hence thread-safe.
class cookie {
public:
    static constexpr std::size_t most_bytes = 8192;  ///< The longest value that is a key.
    static constexpr std::size_t most_pairs = 1000;  ///< Read of all `Cookie` lines together.

    /// Throws std::invalid_argument for a name that no browser sends: an empty one, one with `;`,
    /// `=` or a control character in it, or with a blank at either end. Not only tokens: names
    /// such as `user[id]` are about.
    explicit cookie(std::string name);

    /// The first cookie of this name over all `Cookie` lines in order, even if it is empty and a
    /// later one is not. Lines are cut at `;`, pairs at their first `=`; SP and HTAB around names
    /// and values are dropped. What is left is compared and returned byte by byte: names with their
    /// case, values with their quotes and percent signs. A pair without `=` has no name.
    ///
    /// If the server lost the order of its lines (`line_fidelity::any_order`), lines that name
    /// different values are ambiguous. A name that is not among the first `most_pairs` is too
    /// long. CR, LF or NUL in the value is malformed. Borrows from the request; linear in the bytes
    /// of its lines; no allocation.
    [[nodiscard]] field operator()(const request& from) const;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }

private:
    std::optional<std::string_view> first_in(std::string_view& line, std::size_t& pairs) const;

    std::string name_;
};

// ---------------------------------------------------------------------------------------------

inline cookie::cookie(std::string name) : name_(std::move(name))
{
    const bool odd = std::ranges::any_of(name_, [](char c) {
        return c == ';' || c == '=' || c == 0x7f || static_cast<unsigned char>(c) < 0x20;
    });
    if (odd || name_.empty() || detail::trimmed(name_) != name_)
        detail::invalid("cookie: the name, of " + std::to_string(name_.size()) +
                        " bytes, is none; allowed is all but ';', '=' and control characters, "
                        "without blanks around it");
}

inline field cookie::operator()(const request& from) const
{
    const bool                      ordered = from.lines() != line_fidelity::any_order;
    std::optional<std::string_view> found;
    std::size_t                     pairs = 0;
    bool                            cut = false, differ = false;
    from.for_each_line("Cookie", [&](std::string_view line) {
        if (found && ordered) return;
        const auto here = first_in(line, pairs);
        cut             = cut || (!here && !line.empty());
        differ          = differ || (here && found && *here != *found);
        if (!found) found = here;
    });
    if (differ) return field(absence::ambiguous);
    if (cut) return field(absence::too_long);
    if (found && detail::is_malformed(*found)) return field(absence::malformed);
    return field(found.value_or(std::string_view()), most_bytes);
}

/// Takes pairs off the line up to the first of this name, and counts them.
inline std::optional<std::string_view> cookie::first_in(std::string_view& line,
                                                        std::size_t&      pairs) const
{
    for (; !line.empty() && pairs < most_pairs; ++pairs) {
        const auto pair = detail::take(line, line.find(';'));
        line.remove_prefix(line.empty() ? 0 : 1);
        const auto equals = pair.find('=');
        if (equals != pair.npos && detail::trimmed(pair.substr(0, equals)) == name_)
            return detail::trimmed(pair.substr(equals + 1));
    }
    return std::nullopt;
}

}  // namespace weir
