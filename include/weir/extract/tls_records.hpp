// SPDX-License-Identifier: BSL-1.0
#pragma once

// A hello put together from the records that carry it (RFC 8446 section 5.1), for a program that
// sees the bytes of a connection before its TLS library does. With OpenSSL the library hands out
// the whole message: adapt/openssl_hello.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/extract/client_hello.hpp"

namespace weir {

/// Takes the beginning of a connection in whatever pieces it arrives:
///
///     std::array<char, 16'384> room;
///     weir::tls_records        records(room);
///     while (records.feed(more()) == weir::hello_state::need_more) {}
///     if (const auto& hello = records.hello()) …
///
/// It looks and takes nothing away: hand all bytes on to TLS as they came. Each byte of the hello
/// is copied once into the caller's room, and no more than six bytes are looked at for each;
/// nothing is allocated. Not thread-safe.
class tls_records {
public:
    /// The room is borrowed, and the longest hello that fits into it the longest that is read.
    constexpr explicit tls_records(std::span<char> room) noexcept : room_(room) {}

    /// Reads on with what has arrived since the last call. An answer other than `need_more` stays.
    constexpr hello_state feed(std::string_view arrived) noexcept;

    [[nodiscard]] constexpr hello_state                state() const noexcept { return state_; }
    [[nodiscard]] constexpr std::optional<hello_fault> fault() const noexcept { return fault_; }

    /// The hello, once complete. Borrows the room.
    [[nodiscard]] constexpr const std::optional<client_hello>& hello() const noexcept
    {
        return hello_;
    }

    /// The message as far as it has arrived, without the records around it, while nothing is wrong.
    [[nodiscard]] constexpr std::string_view message() const noexcept
    {
        return {room_.data(), taken_};
    }

private:
    constexpr void take_head(std::string_view& arrived) noexcept;
    constexpr void take_body(std::string_view& arrived) noexcept;
    constexpr void fail(hello_fault why) noexcept;

    std::span<char>             room_;
    std::size_t                 taken_   = 0;  // bytes of the message in the room
    std::size_t                 known_   = 4;  // and in all, as far as is known
    std::size_t                 pending_ = 0;  // bytes of the record that are still to come
    std::array<char, 5>         head_{};
    std::size_t                 head_taken_ = 0;
    hello_state                 state_      = hello_state::need_more;
    std::optional<hello_fault>  fault_;
    std::optional<client_hello> hello_;
};

// ---------------------------------------------------------------------------------------------

constexpr hello_state tls_records::feed(std::string_view arrived) noexcept
{
    while (state_ == hello_state::need_more && !arrived.empty())
        pending_ == 0 ? take_head(arrived) : take_body(arrived);
    return state_;
}

constexpr void tls_records::take_head(std::string_view& arrived) noexcept
{
    constexpr std::size_t handshake = 22, major_version = 3, most = 16'384;
    const auto            count = std::min(arrived.size(), head_.size() - head_taken_);
    std::copy_n(arrived.begin(), count, head_.begin() + static_cast<std::ptrdiff_t>(head_taken_));
    arrived.remove_prefix(count);
    head_taken_ += count;

    detail::hello_cursor head({head_.data(), head_taken_});
    if (head.number(1) != handshake) return fail(hello_fault::not_tls);
    if (head_taken_ > 1 && head.number(1) != major_version) return fail(hello_fault::not_tls);
    if (head_taken_ < head_.size()) return;
    head.take(1);
    pending_    = head.number(2);
    head_taken_ = 0;
    if (pending_ == 0 || pending_ > most) fail(hello_fault::bad_record);
}

constexpr void tls_records::take_body(std::string_view& arrived) noexcept
{
    if (known_ > room_.size()) return fail(hello_fault::too_long);
    const auto count = std::min({arrived.size(), pending_, known_ - taken_});
    std::copy_n(arrived.begin(), count, room_.begin() + static_cast<std::ptrdiff_t>(taken_));
    arrived.remove_prefix(count);
    pending_ -= count;
    taken_ += count;
    if (taken_ > 4 && taken_ < known_) return;  // nothing to be learnt from the part between

    const auto reading = read_client_hello(message(), {.most_bytes = room_.size()});
    if (reading.state == hello_state::no_hello) return fail(*reading.fault);
    known_ = reading.bytes;
    state_ = reading.state;
    if (state_ == hello_state::complete) hello_ = reading.hello;
}

constexpr void tls_records::fail(hello_fault why) noexcept
{
    state_ = hello_state::no_hello;
    fault_ = why;
}

}  // namespace weir
