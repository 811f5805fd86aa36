// SPDX-License-Identifier: BSL-1.0
#pragma once

// Finds the end of a body, and what of it is content, while it goes by. The bytes themselves are
// passed on as they came, so chunks are read strictly: hexadecimal digits, CRLF, nothing folded.

#include "head.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace proxy {

class body_reader {
public:
    body_reader() = default;
    explicit body_reader(const body_plan& plan) noexcept;

    /// Takes what belongs to the body, up to its end, and calls `content` with the pieces of it
    /// that are content. Returns how many bytes it took: fewer than there are once it is `done`
    /// or `bad`.
    template <class Content>
    std::size_t feed(std::string_view bytes, Content&& content);
    std::size_t feed(std::string_view bytes)
    {
        return feed(bytes, [](std::string_view) {});
    }

    [[nodiscard]] bool done() const noexcept { return now_ == state::done; }
    [[nodiscard]] bool bad() const noexcept { return now_ == state::bad; }

    /// The sender has closed: the end of a body that has no other.
    void end() noexcept { now_ = now_ == state::open ? state::done : state::bad; }

private:
    enum class state : std::uint8_t {
        done,
        bad,
        data,  // of a length
        open,  // until the connection is closed
        size,
        extension,
        size_lf,
        chunk,
        chunk_cr,
        chunk_lf,
        trailer,  // at the beginning of a line
        trailer_name,
        trailer_value,
        trailer_lf,
        last_lf,
    };

    /// Extensions and trailers of one message: more is an attack.
    static constexpr std::size_t most_beside = 8'192;

    state step(char c) noexcept;
    state take_size(char c) noexcept;
    void  note_quote(char c) noexcept;
    state take_name(char c) noexcept;
    state name_end() const noexcept;
    state beside(bool allowed, state next) noexcept;

    state         now_    = state::done;
    std::uint8_t  digits_ = 0;
    bool          quoted_ = false, escaped_ = false;  // within an extension
    std::size_t   beside_ = 0;
    std::uint64_t left_   = 0;  // of the content, or of the chunk

    std::array<char, 24> name_{};  // of a trailer: the beginning
    std::size_t          named_ = 0;
};

// ---------------------------------------------------------------------------------------------

inline body_reader::body_reader(const body_plan& plan) noexcept : left_(plan.length)
{
    switch (plan.by) {
    case body_plan::kind::none:
        now_ = state::done;
        break;
    case body_plan::kind::length:
        now_ = left_ > 0 ? state::data : state::done;
        break;
    case body_plan::kind::chunked:
        now_ = state::size, left_ = 0;
        break;
    case body_plan::kind::until_close:
        now_ = state::open;
        break;
    }
}

template <class Content>
std::size_t body_reader::feed(std::string_view bytes, Content&& content)
{
    std::size_t at = 0;
    while (at < bytes.size() && now_ != state::done && now_ != state::bad) {
        if (now_ == state::open) {
            content(bytes.substr(at));
            return bytes.size();
        }
        if (now_ != state::data && now_ != state::chunk) {
            now_ = step(bytes[at++]);
            continue;
        }
        const auto piece = std::min<std::uint64_t>(left_, bytes.size() - at);
        content(bytes.substr(at, static_cast<std::size_t>(piece)));
        at += static_cast<std::size_t>(piece);
        left_ -= piece;
        if (left_ == 0) now_ = now_ == state::data ? state::done : state::chunk_cr;
    }
    return at;
}

inline body_reader::state body_reader::step(char c) noexcept
{
    const bool cr = c == '\r', lf = c == '\n';
    const bool printable = c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
    switch (now_) {
    case state::size:
        return take_size(c);
    case state::extension:
        if (cr && !quoted_) return state::size_lf;
        note_quote(c);
        return beside(printable, state::extension);
    case state::size_lf:
        digits_ = 0;
        return !lf ? state::bad : left_ > 0 ? state::chunk : state::trailer;
    case state::chunk_cr:
        return cr ? state::chunk_lf : state::bad;
    case state::chunk_lf:
        return lf ? state::size : state::bad;
    case state::trailer:
        named_ = 0;
        return cr ? state::last_lf : take_name(c);
    case state::trailer_name:
        return c == ':' ? name_end() : take_name(c);
    case state::trailer_value:
        return cr ? state::trailer_lf : beside(printable, state::trailer_value);
    case state::trailer_lf:
        return lf ? state::trailer : state::bad;
    case state::last_lf:
        return lf ? state::done : state::bad;
    default:
        return state::bad;
    }
}

inline body_reader::state body_reader::take_size(char c) noexcept
{
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) {
        if (digits_ == 0) return state::bad;
        return c == '\r' ? state::size_lf : beside(c == ';', state::extension);
    }
    if (++digits_ > 15) return state::bad;  // 60 bits: it cannot wrap
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    return state::size;
}

/// A line that ends within quotes is refused: another reader might go on to look for their end.
inline void body_reader::note_quote(char c) noexcept
{
    if (c == '"' && !escaped_) quoted_ = !quoted_;
    escaped_ = quoted_ && c == '\\' && !escaped_;
}

inline body_reader::state body_reader::take_name(char c) noexcept
{
    if (named_ < name_.size()) name_[named_] = c;
    ++named_;
    return beside(is_token({&c, 1}), state::trailer_name);
}

/// What frames or routes a message cannot come after it (RFC 9110 section 6.5.1).
inline body_reader::state body_reader::name_end() const noexcept
{
    if (named_ > name_.size()) return state::trailer_value;
    switch (field_named({name_.data(), named_})) {
    case field::connection:
    case field::content_length:
    case field::host:
    case field::transfer_encoding:
        return state::bad;
    default:
        return state::trailer_value;
    }
}

inline body_reader::state body_reader::beside(bool allowed, state next) noexcept
{
    return allowed && ++beside_ <= most_beside ? next : state::bad;
}

}  // namespace proxy
