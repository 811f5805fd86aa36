// SPDX-License-Identifier: BSL-1.0
#pragma once

// The lists that proxies write: X-Forwarded-For and Forwarded (RFC 7239). They are read from the
// right, because each proxy appends: what stands further left was written by somebody further away.
// No input costs more than linear time, and nothing is allocated.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "weir/extract/address.hpp"
#include "weir/extract/request.hpp"

namespace weir {

/// How the elements of a header are written.
enum class list_grammar : std::uint8_t {
    plain,      ///< Addresses, with or without port, between commas: X-Forwarded-For.
    forwarded,  ///< `for=…;by=…` between commas: RFC 7239.
};

/// The elements of all lines of one header, as one list, the last first. Empty ones are left out.
/// Borrows from the request. Reads at most `most_elements` elements of the last `most_lines` lines.
class element_walk {
public:
    static constexpr int         most_elements = 256;
    static constexpr std::size_t most_lines    = 32;

    element_walk(const request& from, std::string_view header, list_grammar grammar);

    /// The next element to the left, without the blanks around it; none at the end of the list or
    /// of what is read. Linear in the bytes passed.
    std::optional<std::string_view> next() noexcept;

    [[nodiscard]] std::size_t lines() const noexcept { return lines_; }  ///< Lines that there are.

    /// Whether `next` ended before the list did.
    [[nodiscard]] bool cut() const noexcept { return cut_; }

private:
    std::string_view take_last() noexcept;

    std::array<std::string_view, most_lines> kept_;  // a ring: line i is at i % most_lines
    std::size_t  lines_    = 0;
    std::size_t  left_     = 0;      // lines that are not used up
    int          elements_ = 0;
    bool         cut_      = false;
    list_grammar grammar_;
};

/// The address that one element names: of an `X-Forwarded-For` element all of it, with or without
/// port; of a `Forwarded` element its `for`. None if there is none to believe: no address, the
/// unspecified one, `unknown`, `_hidden`. A Forwarded element is held to the grammar of RFC 7239
/// section 4 in full: no parameter twice, IPv6 and ports quoted, and an address that needs no
/// quotes has none. At most 16 parameters and 4096 bytes. Linear time.
[[nodiscard]] constexpr std::optional<address> read_element(std::string_view element,
                                                            list_grammar     grammar) noexcept;

// ---------------------------------------------------------------------------------------------

namespace detail {

constexpr std::string_view trimmed(std::string_view text) noexcept
{
    const auto from = text.find_first_not_of(" \t");
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

/// Where the last element begins. Read backwards, a quote closes a string and the next one that is
/// not escaped opens it, so a stray quote further left, in what a client wrote, cannot swallow an
/// element that a proxy appended.
constexpr std::size_t last_element(std::string_view line, list_grammar grammar) noexcept
{
    if (grammar == list_grammar::plain) return line.rfind(',') + 1;  // npos + 1 is the start
    bool quoted = false;
    for (auto i = line.size(); i > 0; --i) {
        if (line[i - 1] == ',' && !quoted) return i;
        if (line[i - 1] != '"') continue;
        const bool escaped = quoted && i > 1 && line[i - 2] == '\\';
        if (!escaped) quoted = !quoted;
    }
    return 0;
}

constexpr bool is_alnum(char c) noexcept
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr std::string_view take(std::string_view& text, std::size_t bytes) noexcept
{
    const auto taken = text.substr(0, bytes);
    text.remove_prefix(taken.size());
    return taken;
}

/// A token of RFC 9110 section 5.6.2, empty if there is none.
constexpr std::string_view take_token(std::string_view& text) noexcept
{
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    std::size_t end = 0;
    while (end < text.size() && (is_alnum(text[end]) || others.find(text[end]) != others.npos))
        ++end;
    return take(text, end);
}

/// The inside of a quoted-string of RFC 9110 section 5.6.4, escapes kept.
constexpr std::optional<std::string_view> take_quoted(std::string_view& text) noexcept
{
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] == '"') return take(text, i + 1).substr(1, i - 1);
        if (text[i] == '\\') ++i;
        const auto byte = static_cast<unsigned char>(i < text.size() ? text[i] : '\0');
        if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return std::nullopt;
    }
    return std::nullopt;
}

/// An obfuscated port: an underscore, then letters, digits, dots, underscores, hyphens.
constexpr bool is_hidden_port(std::string_view text) noexcept
{
    if (text.size() < 2 || text[0] != '_') return false;
    for (const char c : text)
        if (!is_alnum(c) && c != '.' && c != '_' && c != '-') return false;
    return true;
}

/// A node of RFC 7239 section 6 that needs its quotes and is an address: IPv6 in brackets, or
/// either with a port.
constexpr std::optional<address> quoted_node(std::string_view text) noexcept
{
    const auto colon = text.rfind(':');
    if (colon == text.npos || text.find('%') != text.npos) return std::nullopt;
    const auto host   = text.substr(0, colon);
    const bool hidden = is_hidden_port(text.substr(colon + 1));
    if (text[0] != '[' && text.find(':') != colon) return std::nullopt;  // IPv6 without brackets
    if (text[0] == '[' && hidden && !host.ends_with(']')) return std::nullopt;
    return address::parse_endpoint(hidden ? host : text);
}

constexpr std::optional<address> read_forwarded(std::string_view element) noexcept
{
    std::array<std::string_view, 16> seen;
    std::size_t                      count = 0;
    std::optional<address>           found;
    if (element.size() > 4096) return std::nullopt;
    for (bool more = true; more;) {
        if (const auto name = take_token(element); !name.empty()) {
            for (std::size_t i = 0; i < count; ++i)
                if (same_header_name(seen[i], name)) return std::nullopt;
            if (count == seen.size() || take(element, 1) != "=") return std::nullopt;
            seen[count++] = name;

            const bool quoted = element.starts_with('"');
            const auto value  = quoted ? take_quoted(element) : take_token(element);
            if (!value || (!quoted && value->empty())) return std::nullopt;
            if (same_header_name(name, "for"))
                found = quoted ? quoted_node(*value) : address::parse(*value);
        }
        more = !element.empty();
        if (more && take(element, 1) != ";") return std::nullopt;
    }
    return found;
}

}  // namespace detail

constexpr std::optional<address> read_element(std::string_view element,
                                              list_grammar     grammar) noexcept
{
    const auto found = grammar == list_grammar::plain ? address::parse_endpoint(element)
                                                      : detail::read_forwarded(element);
    return found && !found->is_unspecified() ? found : std::nullopt;
}

inline element_walk::element_walk(const request& from, std::string_view header,
                                  list_grammar grammar)
    : grammar_(grammar)
{
    from.for_each_line(header, [&](std::string_view line) { kept_[lines_++ % most_lines] = line; });
    left_ = lines_;
}

inline std::string_view element_walk::take_last() noexcept
{
    auto&      line    = kept_[(left_ - 1) % most_lines];
    const auto from    = detail::last_element(line, grammar_);
    const auto element = detail::trimmed(line.substr(from));
    line = line.substr(0, from == 0 ? 0 : from - 1);
    if (from == 0) --left_;
    return element;
}

inline std::optional<std::string_view> element_walk::next() noexcept
{
    while (left_ > 0) {
        cut_ = lines_ - left_ >= most_lines || elements_ == most_elements;
        if (cut_) return std::nullopt;
        if (const auto element = take_last(); !element.empty()) {
            ++elements_;
            return element;
        }
    }
    return std::nullopt;
}

}  // namespace weir
