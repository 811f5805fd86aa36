// SPDX-License-Identifier: BSL-1.0
#pragma once

// Ranges of addresses, and what a set of them covers.

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/extract/address.hpp"

namespace weir {

/// The addresses that share a prefix. A value; IPv4 and IPv6 never match each other.
class cidr {
public:
    /// Bits of `of` after the first `prefix` are cleared.
    constexpr cidr(const address& of, int prefix) noexcept
        : network_(of.masked(prefix)), prefix_(std::clamp(prefix, 0, of.width()))
    {
    }

    /// Reads `10.0.0.0/8`, `2001:db8::/32`, or a bare address, which is a range of one. Bits after
    /// the prefix may be set and are ignored. No netmask, no zone id, no leading zero in the
    /// length. An IPv4-mapped range is the IPv4 range; shorter than /96 it is an error.
    [[nodiscard]] static constexpr std::optional<cidr> parse(std::string_view text) noexcept;

    [[nodiscard]] constexpr bool contains(const address& one) const noexcept
    {
        return one.family() == network_.family() && one.masked(prefix_) == network_;
    }
    [[nodiscard]] constexpr bool contains(const cidr& other) const noexcept
    {
        return prefix_ <= other.prefix_ && contains(other.network_);
    }
    [[nodiscard]] constexpr const address& network() const noexcept { return network_; }
    [[nodiscard]] constexpr int            prefix() const noexcept { return prefix_; }

    friend constexpr bool operator==(const cidr&, const cidr&) = default;

private:
    address network_;
    int     prefix_;
};

[[nodiscard]] inline std::string to_string(const cidr& of)
{
    return to_string(of.network()) + '/' + std::to_string(of.prefix());
}

/// Networks that are not reachable from the internet at large: loopback, private use (RFC 1918,
/// RFC 4193), link-local (RFC 3927, RFC 4291), carrier-grade NAT (RFC 6598), benchmarks (RFC 2544).
[[nodiscard]] constexpr std::span<const cidr> private_networks() noexcept;

/// Whether the address is in one of `private_networks()`.
[[nodiscard]] constexpr bool is_private(const address& one) noexcept;

/// Whether every address of `whole` is in one of `ranges`. O(n²) in the number of ranges.
[[nodiscard]] inline bool covers(const std::vector<cidr>& ranges, const cidr& whole);

// ---------------------------------------------------------------------------------------------

constexpr std::optional<cidr> cidr::parse(std::string_view text) noexcept
{
    const auto slash = text.find('/');
    const auto host  = text.substr(0, slash);
    const auto found = address::parse(host);
    if (!found || host.find('%') != host.npos) return std::nullopt;
    if (slash == text.npos) return cidr(*found, found->width());

    const auto length  = text.substr(slash + 1);
    const bool spelled = host.find(':') != host.npos;  // as IPv6, mapped or not
    const auto prefix  = detail::decimal(length, 3, spelled ? 128 : 32);
    const auto folded  = spelled && found->is_v4() ? prefix - 96 : prefix;
    if (prefix < 0 || folded < 0 || (length.size() > 1 && length[0] == '0')) return std::nullopt;
    return cidr(*found, folded);
}

namespace detail {

inline constexpr std::array not_public = {
    cidr(address::from_v4({10}), 8),       cidr(address::from_v4({100, 64}), 10),
    cidr(address::from_v4({127}), 8),      cidr(address::from_v4({169, 254}), 16),
    cidr(address::from_v4({172, 16}), 12), cidr(address::from_v4({192, 168}), 16),
    cidr(address::from_v4({198, 18}), 15), cidr(*address::parse("::1"), 128),
    cidr(*address::parse("fc00::"), 7),    cidr(*address::parse("fe80::"), 10),
};

}  // namespace detail

constexpr std::span<const cidr> private_networks() noexcept { return detail::not_public; }

constexpr bool is_private(const address& one) noexcept
{
    return std::ranges::any_of(private_networks(),
                               [&](const cidr& range) { return range.contains(one); });
}

/// Halves what is left open until one range holds it or none lies inside it.
inline bool covers(const std::vector<cidr>& ranges, const cidr& whole)
{
    std::vector<cidr> inside;
    for (const auto& range : ranges) {
        if (range.contains(whole)) return true;
        if (whole.contains(range)) inside.push_back(range);
    }
    if (inside.empty()) return false;

    auto       upper = whole.network().bytes();
    const auto bit   = static_cast<std::size_t>(whole.prefix());
    upper[bit / 8] |= static_cast<std::uint8_t>(0x80U >> bit % 8);
    const auto second = whole.network().is_v4()
                            ? address::from_v4({upper[0], upper[1], upper[2], upper[3]})
                            : address::from_v6(upper);
    return covers(inside, cidr(whole.network(), whole.prefix() + 1)) &&
           covers(inside, cidr(second, whole.prefix() + 1));
}

}  // namespace weir
