// SPDX-License-Identifier: BSL-1.0

#include "body/media_type.hpp"

#include <algorithm>

namespace forms {

namespace {

/// Takes `"…"` with backslash escapes off the front. Browsers write %22 for a quote, so the only
/// escapes that occur are of a quote and of a backslash; before any other letter a backslash is
/// itself, as in the paths of old browsers.
std::optional<std::string> take_quoted(std::string_view& rest)
{
    std::string value;
    for (std::size_t i = 1; i < rest.size(); ++i) {
        if (rest[i] == '"') {
            rest.remove_prefix(i + 1);
            return value;
        }
        const bool escapes = rest[i] == '\\' && i + 1 < rest.size() &&
                             (rest[i + 1] == '"' || rest[i + 1] == '\\');
        value += rest[escapes ? ++i : i];
    }
    return std::nullopt;
}

std::optional<std::string> take_value(std::string_view& rest)
{
    if (rest.starts_with('"')) return take_quoted(rest);
    const auto bare = rest.substr(0, rest.find(';'));
    rest.remove_prefix(bare.size());
    return std::string(trimmed(bare));
}

}  // namespace

std::string lower_case(std::string_view text)
{
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    });
    return lower;
}

std::string_view trimmed(std::string_view text)
{
    const auto first = text.find_first_not_of(" \t");
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

const std::string* media_type::parameter(std::string_view name) const
{
    const auto found =
        std::ranges::find_if(parameters, [&](const auto& each) { return each.first == name; });
    return found == parameters.end() ? nullptr : &found->second;
}

std::optional<media_type> parse_media_type(std::string_view text)
{
    const auto type = text.substr(0, text.find(';'));
    media_type read{.type = lower_case(trimmed(type))};
    text.remove_prefix(type.size());
    while (!text.empty()) {
        text.remove_prefix(1);  // the semicolon
        text = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
        if (text.empty() || text.front() == ';') continue;
        const auto equals = text.find('=');
        if (equals == text.npos) return std::nullopt;
        auto name = lower_case(trimmed(text.substr(0, equals)));
        text.remove_prefix(equals + 1);
        auto value = take_value(text);
        text       = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
        if (!value || (!text.empty() && text.front() != ';')) return std::nullopt;
        read.parameters.emplace_back(std::move(name), std::move(*value));
    }
    return read;
}

}  // namespace forms
