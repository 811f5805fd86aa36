// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who we believe is calling, as a subject that a limiter counts.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/extract/cidr.hpp"
#include "weir/key.hpp"

namespace weir {

/// Why the client address is only the best that could be believed.
enum class degradation : std::uint8_t {
    no_peer_address,       ///< The peer is unknown or a Unix socket, and nobody else is believed.
    element_unreadable,    ///< An element is no address: the last trusted address stands.
    list_too_short,        ///< Fewer elements than trusted hops: the peer stands.
    list_too_long,         ///< More than is read: the last trusted address stands.
    too_many_elements,     ///< A header that the edge replaces holds several: the peer stands.
    line_order_unknown,    ///< Several lines, and the server lost their order: the peer stands.
    lines_may_be_missing,  ///< The server drops repeated lines: the peer stands.
};

/// The reason's name, as in docs/warnings.md.
[[nodiscard]] constexpr std::string_view name(degradation why) noexcept;

/// A client address with the prefix it is counted by, or none. A value, and a subject: hand it to
/// `admit`. All that are none are one subject, so they share one bucket; look with
/// `if (!client)` to treat them otherwise.
class client {
public:
    /// None.
    constexpr explicit client(degradation why = degradation::no_peer_address) noexcept
        : degraded_(why)
    {
    }

    /// IPv6 is counted by its first `prefix` bits (held in 0 to 128), IPv4 whole.
    constexpr explicit client(const weir::address& at, int prefix = 64,
                              std::optional<degradation> why = std::nullopt) noexcept
        : address_(at), prefix_(at.is_v4() ? 32 : std::clamp(prefix, 0, 128)), degraded_(why)
    {
        const auto kept = at.masked(prefix_).bytes();
        bytes_[0] = static_cast<char>(at.family());
        bytes_[1] = static_cast<char>(prefix_);
        std::ranges::transform(kept, bytes_.begin() + 2,
                               [](auto byte) { return static_cast<char>(byte); });
    }

    constexpr explicit operator bool() const noexcept { return address_.has_value(); }

    /// The whole address, for logs and rules. A limit counts `bytes()`.
    [[nodiscard]] constexpr const std::optional<weir::address>& address() const noexcept
    {
        return address_;
    }
    [[nodiscard]] constexpr int prefix() const noexcept { return prefix_; }

    /// Set if the address is less than was asked for, though nothing that an untrusted party wrote.
    [[nodiscard]] constexpr std::optional<degradation> degraded() const noexcept
    {
        return degraded_;
    }

    /// The same client under a wider IPv6 prefix, for a limit of its own. Never narrower than this
    /// one; IPv4 and none stay as they are.
    [[nodiscard]] constexpr client tier(int prefix) const noexcept
    {
        return address_ ? client(*address_, std::min(prefix, prefix_), degraded_) : *this;
    }

    /// What is counted, 18 bytes: family (4, 6; 0 is none), prefix length, the first `prefix` bits
    /// of the address in network order and zeros. Borrowed from this client.
    [[nodiscard]] constexpr std::string_view bytes() const noexcept
    {
        return {bytes_.data(), bytes_.size()};
    }

    friend constexpr bool operator==(const client&, const client&) = default;

private:
    std::optional<weir::address> address_;
    int                          prefix_ = 0;
    std::optional<degradation>   degraded_;
    std::array<char, 18>         bytes_{};
};

static_assert(subject_part<client>);

/// `203.0.113.7`, `2001:db8::/64`, or `none`: what is counted, for people to read.
[[nodiscard]] std::string to_string(const client& of);

// ---------------------------------------------------------------------------------------------

constexpr std::string_view name(degradation why) noexcept
{
    switch (why) {
    case degradation::no_peer_address: return "no_peer_address";
    case degradation::element_unreadable: return "element_unreadable";
    case degradation::list_too_short: return "list_too_short";
    case degradation::list_too_long: return "list_too_long";
    case degradation::too_many_elements: return "too_many_elements";
    case degradation::line_order_unknown: return "line_order_unknown";
    case degradation::lines_may_be_missing: return "lines_may_be_missing";
    }
    return "unnamed";
}

inline std::string to_string(const client& of)
{
    if (!of) return "none";
    return of.address()->is_v4() ? to_string(*of.address())
                                 : to_string(cidr(*of.address(), of.prefix()));
}

}  // namespace weir
