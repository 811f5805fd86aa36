// SPDX-License-Identifier: BSL-1.0

#include "screen.hpp"

#include "weir/http/refusal.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace weir::config {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::uint32_t code_point(std::string_view character) noexcept
{
    constexpr unsigned lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    std::uint32_t point = static_cast<unsigned char>(character[0]) & lead_bits[character.size()];
    for (const char c : character.substr(1)) point = point << 6 | (static_cast<unsigned>(c) & 0x3f);
    return point;
}

/// Follows strings and comments as the parser does, up to where that one sees its first error.
/// - In a comment what is not ASCII becomes a question mark, in a string an escape.
/// - Strings in single quotes, which have no escapes, become ones in double quotes.
class reader {
public:
    explicit reader(std::string_view from) : rest_(from)
    {
        if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
        out_.at = {1, 1};
    }

    screened read()
    {
        while (!rest_.empty() && out_.fault.empty()) {
            if (rest_[0] == '\n') end_line();
            else if (comment_) take([](std::string_view) { return "?"; });
            else if (quote_ == 0) outside();
            else inside();
        }
        return std::move(out_);
    }

private:
    void end_line()
    {
        put(1, "\n");
        ++out_.at.line;
        out_.at.column = 1;
        column_        = 1;
        dots_          = 0;
        comment_       = false;
        if (!multi_) quote_ = 0;
    }

    /// Takes so many bytes, which are one character if they are not ASCII, and writes `as`.
    void put(std::size_t bytes, std::string_view as)
    {
        const bool ascii  = static_cast<unsigned char>(rest_[0]) < 0x80;
        const auto before = column_ - out_.at.column;
        rest_.remove_prefix(bytes);
        out_.text += as;
        out_.at.column += ascii ? static_cast<std::uint32_t>(bytes) : 1;
        column_ += static_cast<std::uint32_t>(as.size());
        const auto after = column_ - out_.at.column;
        if (after != before) out_.shifts.push_back({{out_.at.line, column_}, after});
    }

    /// One character, written as `otherwise` says if it is not ASCII.
    template <class Otherwise>
    void take(const Otherwise& otherwise)
    {
        const auto bytes = weir::detail::utf8_length(rest_);
        if (bytes == 0) out_.fault = "there are bytes here that are not UTF-8";
        else if (bytes == 1) put(1, rest_.substr(0, 1));
        else put(bytes, otherwise(rest_.substr(0, bytes)));
    }

    void outside()
    {
        const char c = rest_[0];
        if (static_cast<unsigned char>(c) >= 0x80)
            out_.fault = "a character that is not ASCII stands outside of quotes";
        else if (c == '"' || c == '\'') return open(c);
        else if (c == '.' && ++dots_ > most_dots)
            out_.fault = "a key has more than " + std::to_string(most_dots) +
                         " dots, each of which nests a table";
        comment_ = c == '#';
        if (out_.fault.empty()) put(1, rest_.substr(0, 1));
    }

    void open(char quote)
    {
        quote_ = quote;
        multi_ = rest_.starts_with(std::string(3, quote));
        if (multi_) put(3, R"(""")");
        else put(1, "\"");
    }

    void inside()
    {
        const char c = rest_[0];
        if (c == quote_ && (!multi_ || rest_.starts_with(std::string(3, c)))) return close();
        if (c == '\\' && quote_ == '"') return escape();
        if (c == '\\' || (c == '"' && quote_ == '\'')) return put(1, c == '"' ? "\\\"" : "\\\\");
        take(&escaped);
    }

    static std::string escaped(std::string_view character)
    {
        char text[12];
        std::snprintf(text, sizeof text, "\\U%08X", static_cast<unsigned>(code_point(character)));
        return text;
    }

    /// A multi-line string may end with two quotes of its own right before its three.
    void close()
    {
        const auto run = std::min(rest_.find_first_not_of(quote_), rest_.size());
        if (multi_)
            for (auto own = std::min<std::size_t>(run, 5); own > 3; --own)
                put(1, quote_ == '"' ? "\"" : "'");
        if (multi_) put(3, R"(""")");
        else put(1, "\"");
        quote_ = 0;
        multi_ = false;
    }

    void escape()
    {
        put(1, "\\");
        if (rest_.empty() || rest_[0] == '\n') return;
        if (static_cast<unsigned char>(rest_[0]) < 0x80) put(1, rest_.substr(0, 1));
        else out_.fault = "a backslash stands before a character that is not ASCII";
    }

    std::string_view rest_;
    std::uint32_t    column_  = 1;  // in the text that is written
    std::size_t      dots_    = 0;  // on this line
    char             quote_   = 0;  // of the string that is open
    bool             multi_   = false;
    bool             comment_ = false;
    screened         out_;
};

}  // namespace

place screened::written(const place& in_text) const noexcept
{
    const auto after = std::ranges::upper_bound(shifts, in_text, {}, &shift::from);
    if (after == shifts.begin() || std::prev(after)->from.line != in_text.line) return in_text;
    return {in_text.line, in_text.column - std::min(in_text.column - 1, std::prev(after)->by)};
}

screened screen(std::string_view from) { return reader(from).read(); }

}  // namespace weir::config
