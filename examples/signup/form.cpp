// SPDX-License-Identifier: BSL-1.0

#include "form.hpp"

#include "mail/address.hpp"

#include <algorithm>

namespace signup {

namespace {

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// A `%` without two digits stands for itself.
std::string decoded(std::string_view text)
{
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low  = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (text[i] == '+') plain += ' ';
        else if (text[i] == '%' && high >= 0 && low >= 0)
            plain += static_cast<char>(high * 16 + low), i += 2;
        else plain += text[i];
    }
    return plain;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

/// Bytes of the character at the start of `text`, or 0 if it is not well-formed UTF-8 (table 3-7 of
/// the Unicode standard).
std::size_t character_length(std::string_view text)
{
    const auto        lead   = static_cast<unsigned char>(text[0]);
    const auto        second = text.size() > 1 ? static_cast<unsigned char>(text[1]) : 0U;
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xc2 ? 0
                               : lead < 0xe0 ? 2
                               : lead < 0xf0 ? 3
                               : lead < 0xf5 ? 4
                                             : 0;
    if (length == 0 || text.size() < length) return 0;
    if (!std::ranges::all_of(text.substr(1, length - 1), continues)) return 0;
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool outside  = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
    return overlong || outside ? 0 : length;
}

bool is_layout(char c) { return c == '\n' || c == '\r' || c == '\t'; }

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

/// How many characters; none for what is no text: other bytes than UTF-8, control characters.
std::optional<std::size_t> characters(std::string_view text, bool of_many_lines)
{
    std::size_t count = 0;
    for (; !text.empty(); ++count) {
        const char first  = text.front();
        const auto length = character_length(text);
        if (length == 0 || (is_control(first) && !(of_many_lines && is_layout(first))))
            return std::nullopt;
        text.remove_prefix(length);
    }
    return count;
}

std::string text_complaint(std::string_view text, std::size_t most, bool of_many_lines)
{
    const auto count = characters(text, of_many_lines);
    if (!count) return "There are characters in it that cannot be kept.";
    if (*count > most) return "At most " + std::to_string(most) + " characters, please.";
    return "";
}

}  // namespace

std::optional<fields> fields::parse(std::string_view body)
{
    fields made;
    for (std::size_t count = 0; !body.empty(); ++count) {
        if (count == 100) return std::nullopt;
        const auto pair = body.substr(0, body.find('&'));
        body.remove_prefix(std::min(pair.size() + 1, body.size()));
        const auto equals = pair.find('=');
        made.values_.try_emplace(decoded(pair.substr(0, equals)),
                                 equals == pair.npos ? "" : decoded(pair.substr(equals + 1)));
    }
    return made;
}

const std::string& fields::operator[](std::string_view name) const
{
    static const std::string none;
    const auto               found = values_.find(name);
    return found == values_.end() ? none : found->second;
}

std::string readable(std::string_view text)
{
    std::string made;
    while (!text.empty()) {
        const auto length = character_length(text);
        const bool shown  = length > 0 && (is_layout(text[0]) || !is_control(text[0]));
        made += shown ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return made;
}

entries entries_of(const fields& sent)
{
    return {.email = sent["email"], .name = sent["name"], .about = sent["about"]};
}

complaints complaints_of(const entries& sent)
{
    complaints made;
    if (!mail_address::parse(sent.email))
        made.email = "We need an e-mail address to write to, such as you@example.org.";
    if (sent.name.find_first_not_of(' ') == std::string::npos) made.name = "How may we call you?";
    else made.name = text_complaint(sent.name, most_name, false);
    made.about = text_complaint(sent.about, most_about, true);
    return made;
}

}  // namespace signup
