// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which TLS stack is calling: JA4, as FoxIO's text describes it (technical_details/JA4.md, TLS
// clients only; no other part of JA4+ is here). A class of clients that anyone can imitate, never a
// person: docs/tls-fingerprints.md says what it can and cannot do. Link weir::ja4.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "weir/extract/client_hello.hpp"
#include "weir/key.hpp"

namespace weir {
namespace detail {
struct fingerprint_maker;
}  // namespace detail

/// `t13d1516h2_8daaf6152771_e5627efa2ab1`, or none. A value, and a subject: hand it to `admit`.
/// All that are none are one subject; look with `if (!fingerprint)`, or use `step_for`.
class tls_fingerprint {
public:
    static constexpr std::size_t length = 36;

    /// None.
    constexpr tls_fingerprint() noexcept = default;

    /// From text of this very form; none for any other.
    [[nodiscard]] static constexpr tls_fingerprint parse(std::string_view text) noexcept;

    constexpr explicit operator bool() const noexcept { return text_[0] != '\0'; }

    /// What is counted; empty if it is none. Borrowed from this fingerprint.
    [[nodiscard]] constexpr std::string_view bytes() const noexcept
    {
        return {text_.data(), *this ? length : 0};
    }

    /// Coarser keys, for clients that change theirs with every connection. `t13d1516h2`: transport,
    /// version, whether a server is named, how many ciphers and extensions, and the protocol.
    [[nodiscard]] constexpr std::string_view outline() const noexcept
    {
        return bytes().substr(0, 10);
    }
    /// `8daaf6152771`: the ciphers alone.
    [[nodiscard]] constexpr std::string_view ciphers() const noexcept
    {
        return *this ? bytes().substr(11, 12) : std::string_view();
    }

    friend constexpr bool operator==(const tls_fingerprint&, const tls_fingerprint&) = default;

private:
    friend detail::fingerprint_maker;

    std::array<char, length> text_{};
};

static_assert(subject_part<tls_fingerprint>);

/// JA4: lists in the order of their numbers, so that shuffling them changes nothing. GREASE
/// (RFC 8701) is left out everywhere, of the signature algorithms too.
///
/// All of these are linear in the bytes of the hello (lists of more than 256 take up to 16 passes),
/// thread-safe, and allocate once in each thread's life; they end the program if libcrypto has no
/// memory for that.
[[nodiscard]] tls_fingerprint ja4(const client_hello& of) noexcept;

/// JA4_o: lists in the order of the wire, the server's name and ALPN among them.
[[nodiscard]] tls_fingerprint ja4_o(const client_hello& of) noexcept;

/// Ours, for limits: built as JA4 but as if padding (0015), session_ticket (0023), pre_shared_key
/// (0029) and early_data (002a) had not been sent, which come and go from one connection of a
/// client to its next. Not a JA4: compare it with others of its kind only.
[[nodiscard]] tls_fingerprint stable_key(const client_hello& of) noexcept;

/// JA4_r and JA4_ro: the lists themselves where the others have their digests. Writes into `room`
/// what fits there and returns how many characters there are in all. No allocation.
std::size_t ja4_r(const client_hello& of, std::span<char> room) noexcept;
std::size_t ja4_ro(const client_hello& of, std::span<char> room) noexcept;

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Whether a fingerprint can have this character at this place.
constexpr bool is_ja4_char(std::size_t place, char c) noexcept
{
    const auto in    = [c](std::string_view allowed) { return allowed.find(c) != allowed.npos; };
    const bool digit = in("0123456789");
    switch (place) {
    case 0:
        return in("tqd");
    case 1:
        return in("0123456789sd");
    case 3:
        return in("di");
    case 8:
    case 9:
        return digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    case 10:
    case 23:
        return c == '_';
    default:
        return place < 8 ? digit : digit || in("abcdef");
    }
}

}  // namespace detail

constexpr tls_fingerprint tls_fingerprint::parse(std::string_view text) noexcept
{
    tls_fingerprint made;
    if (text.size() != length) return {};
    for (std::size_t i = 0; i < length; ++i) {
        if (!detail::is_ja4_char(i, text[i])) return {};
        made.text_[i] = text[i];
    }
    return made;
}

}  // namespace weir
