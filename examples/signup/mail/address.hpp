// SPDX-License-Identifier: BSL-1.0
#pragma once

// An address to send to, and what is counted of it: one mailbox has many spellings, and a limit by
// spelling is none.

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace signup {

[[nodiscard]] inline std::string lower_case(std::string_view text);

/// `local@domain`, both of ASCII: dot-atoms as in RFC 5322 section 3.4.1, of the lengths in RFC
/// 5321 section 4.5.3.1. No quoted local parts, no comments, no line breaks: it is safe in a
/// header.
struct mail_address {
    std::string local  = {};
    std::string domain = {};

    /// Without the blanks around it; none if it is no such address.
    [[nodiscard]] static std::optional<mail_address> parse(std::string_view text);

    [[nodiscard]] std::string text() const { return local + '@' + domain; }

    /// In lower case; with `fold_tags` without what follows a `+`; without dots where the domain is
    /// one of `dotless`, whose servers ignore them.
    [[nodiscard]] std::string canonical(bool fold_tags, std::span<const std::string> dotless) const;
};

// ---------------------------------------------------------------------------------------------

inline std::string lower_case(std::string_view text)
{
    std::string lower(text);
    for (auto& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return lower;
}

namespace detail {

inline bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Parts between dots, none of them empty, all of these characters.
template <class Allowed>
bool is_dotted(std::string_view text, Allowed allowed)
{
    return !text.empty() && text.front() != '.' && text.back() != '.' &&
           text.find("..") == text.npos &&
           std::ranges::all_of(text, [&](char c) { return c == '.' || allowed(c); });
}

}  // namespace detail

inline std::optional<mail_address> mail_address::parse(std::string_view text)
{
    constexpr std::string_view blanks = " \t\r\n";
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    text          = text.substr(0, text.find_last_not_of(blanks) + 1);
    const auto at = text.rfind('@');
    if (at == text.npos) return std::nullopt;
    const auto local = text.substr(0, at), domain = text.substr(at + 1);
    const auto atom = [](char c) {
        return detail::is_alphanumeric(c) ||
               std::string_view("!#$%&'*+-/=?^_`{|}~").find(c) != std::string_view::npos;
    };
    const auto label = [](char c) { return detail::is_alphanumeric(c) || c == '-'; };
    if (local.size() > 64 || domain.size() > 189 || !detail::is_dotted(local, atom) ||
        !detail::is_dotted(domain, label) || domain.starts_with('-') || domain.ends_with('-'))
        return std::nullopt;
    return mail_address{.local = std::string(local), .domain = std::string(domain)};
}

inline std::string mail_address::canonical(bool                         fold_tags,
                                           std::span<const std::string> dotless) const
{
    auto       box  = lower_case(local);
    const auto host = lower_case(domain);
    // A tag without a box before it is no tag.
    if (const auto tag = box.find('+'); fold_tags && tag != box.npos && tag > 0) box.resize(tag);
    if (std::ranges::find(dotless, host) != dotless.end()) std::erase(box, '.');
    return box + '@' + host;
}

}  // namespace signup
