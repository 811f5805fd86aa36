// SPDX-License-Identifier: BSL-1.0
#pragma once

// A field that no person finds: off screen, out of the accessibility tree and of the tab order,
// under a name that no browser fills. A value in it marks a script. Tell the script what a person
// is told, and keep nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weir/time.hpp"

namespace weir {

struct honeypot_options {
    /// Of the field. Not what a browser or a password manager knows: no email, url, phone, name …
    std::string name  = "remark_b";
    std::string label = "Leave this empty";  ///< For whoever sees the page without its style.

    /// Class that hides it by a rule of yours (`css()`), where a Content-Security-Policy forbids
    /// inline styles; empty: an inline style hides it.
    std::string css_class = {};

    /// A filled trap is only suspicious from this age of a genuine token on: an extension may have
    /// filled it for a person. None: it is sprung at any age.
    std::optional<duration> lenient_after = std::nullopt;
};

enum class trap : std::uint8_t {
    empty,
    suspicious,  ///< Filled, but slowly: limit it harder, keep it.
    sprung,      ///< A script.
};

/// Immutable, hence thread-safe.
class honeypot {
public:
    explicit honeypot(honeypot_options options = {}) : options_(std::move(options)) {}

    [[nodiscard]] const std::string& name() const noexcept { return options_.name; }

    /// The field, to stand anywhere within the form.
    [[nodiscard]] std::string markup() const;

    /// The rule that hides it, for a style sheet; empty without a class.
    [[nodiscard]] std::string css() const;

    /// `value`: what was sent under `name()`, empty if nothing was. `age`: of the form's token if
    /// it is valid, else none. O(1).
    [[nodiscard]] trap check(std::string_view        value,
                             std::optional<duration> age = std::nullopt) const noexcept
    {
        if (value.empty()) return trap::empty;
        const bool slow = options_.lenient_after && age && *age >= *options_.lenient_after;
        return slow ? trap::suspicious : trap::sprung;
    }

private:
    honeypot_options options_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Not display:none and not type=hidden, both of which scripts pass over.
inline constexpr std::string_view off_screen =
    "position:absolute;left:-10000px;top:auto;width:1px;height:1px;overflow:hidden";

inline std::string in_html(std::string_view text)
{
    std::string safe;
    for (const char c : text) switch (c) {
        case '&':
            safe += "&amp;";
            break;
        case '<':
            safe += "&lt;";
            break;
        case '>':
            safe += "&gt;";
            break;
        case '"':
            safe += "&quot;";
            break;
        case '\'':
            safe += "&#39;";
            break;
        default:
            safe += c;
        }
    return safe;
}

}  // namespace detail

inline std::string honeypot::markup() const
{
    const auto hides = options_.css_class.empty()
                           ? "style=\"" + std::string(detail::off_screen) + '"'
                           : "class=\"" + detail::in_html(options_.css_class) + '"';
    // `inert` takes it out of focus, search and the accessibility tree; the rest is for browsers
    // that do not know it.
    return "<div " + hides + " aria-hidden=\"true\" inert><label>" +
           detail::in_html(options_.label) + " <input type=\"text\" name=\"" +
           detail::in_html(options_.name) +
           "\" value=\"\" tabindex=\"-1\" autocomplete=\"off\" data-1p-ignore "
           "data-lpignore=\"true\""
           " data-bwignore></label></div>";
}

inline std::string honeypot::css() const
{
    if (options_.css_class.empty()) return "";
    return '.' + options_.css_class + '{' + std::string(detail::off_screen) + '}';
}

}  // namespace weir
