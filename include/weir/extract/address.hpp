// SPDX-License-Identifier: BSL-1.0
#pragma once

// An IP address as a value. It is judged by its bits, never by its spelling: an IPv4-mapped IPv6
// address is the IPv4 address, a zone id is dropped, and each address has one printed form.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

enum class ip_family : std::uint8_t { v4 = 4, v6 = 6 };

/// An IPv4 or IPv6 address. A value of 24 bytes, ordered (IPv4 first); thread-safe as a value is.
class address {
public:
    /// `::`, the unspecified address.
    constexpr address() noexcept = default;

    [[nodiscard]] static constexpr address from_v4(const std::array<std::uint8_t, 4>& b) noexcept;

    /// An IPv4-mapped address (::ffff:0:0/96) becomes the IPv4 address.
    [[nodiscard]] static constexpr address from_v6(const std::array<std::uint8_t, 16>& b) noexcept;

    /// Reads exactly one address: dotted decimal with four numbers and no leading zeros (no octal,
    /// hex or short form), or the text of RFC 4291 section 2.2 with an optional zone id, which is
    /// dropped. Constant time: more than 45 characters before a zone are never an address.
    [[nodiscard]] static constexpr std::optional<address> parse(std::string_view text) noexcept;

    /// As `parse`, and also what proxies write with a port: `ip:port`, `[v6]`, `[v6]:port`. The
    /// port must be one that exists (0 to 65535) and is dropped.
    [[nodiscard]] static constexpr std::optional<address>
    parse_endpoint(std::string_view text) noexcept;

    [[nodiscard]] constexpr ip_family family() const noexcept { return family_; }
    [[nodiscard]] constexpr bool is_v4() const noexcept { return family_ == ip_family::v4; }
    [[nodiscard]] constexpr int  width() const noexcept { return is_v4() ? 32 : 128; }

    /// Network order; an IPv4 address is the first four, the rest is zero.
    [[nodiscard]] constexpr std::array<std::uint8_t, 16> bytes() const noexcept;

    /// The address with all but its first `prefix` bits cleared (0 to `width()`, held there).
    [[nodiscard]] constexpr address masked(int prefix) const noexcept;

    /// 0.0.0.0 or `::`: no client can have it.
    [[nodiscard]] constexpr bool is_unspecified() const noexcept { return high_ == 0 && low_ == 0; }

    friend constexpr auto operator<=>(const address&, const address&) = default;

private:
    constexpr address(ip_family family, std::uint64_t high, std::uint64_t low) noexcept
        : family_(family), high_(high), low_(low)
    {
    }

    ip_family     family_ = ip_family::v6;
    std::uint64_t high_   = 0;  // the first eight bytes as a number; IPv4 in its upper half
    std::uint64_t low_    = 0;
};

/// The form of RFC 5952: lower case, no leading zeros, the longest run of zero groups as `::`.
[[nodiscard]] std::string to_string(const address& of);

// ---------------------------------------------------------------------------------------------

namespace detail {

constexpr std::uint64_t big_endian(const std::uint8_t* from, std::size_t bytes) noexcept
{
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes; ++i) word = word << 8 | from[i];
    return word;
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Up to four hex digits; -1 for anything else, the empty text included.
constexpr int hex_group(std::string_view text) noexcept
{
    if (text.empty() || text.size() > 4) return -1;
    int value = 0;
    for (const char c : text) {
        const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c | 0x20) : c;
        if (!is_digit(lower) && (lower < 'a' || lower > 'f')) return -1;
        value = value * 16 + (is_digit(lower) ? lower - '0' : lower - 'a' + 10);
    }
    return value;
}

/// A decimal number of 1 to `digits` digits, at most `most`; -1 for anything else.
constexpr int decimal(std::string_view text, std::size_t digits, int most) noexcept
{
    if (text.empty() || text.size() > digits) return -1;
    int value = 0;
    for (const char c : text) {
        if (!is_digit(c)) return -1;
        value = value * 10 + (c - '0');
    }
    return value <= most ? value : -1;
}

constexpr bool read_v4(std::string_view text, std::uint8_t* out) noexcept
{
    for (int i = 0; i < 4; ++i) {
        const auto dot    = i < 3 ? text.find('.') : text.size();
        const auto number = text.substr(0, dot);
        const auto value  = decimal(number, 3, 255);
        if (dot == text.npos || value < 0 || (number.size() > 1 && number[0] == '0')) return false;
        out[i] = static_cast<std::uint8_t>(value);
        text.remove_prefix(i < 3 ? dot + 1 : dot);
    }
    return true;
}

/// Moves what stands behind `::` to the end. `::` stands for one group at least.
constexpr bool spread(std::array<std::uint8_t, 16>& out, std::size_t filled,
                      std::size_t gap) noexcept
{
    if (gap == out.size() + 1) return filled == out.size();
    if (filled > out.size() - 2) return false;
    for (std::size_t from = filled, to = out.size(); from > gap;) {
        out[--to] = out[--from];
        out[from] = 0;
    }
    return true;
}

constexpr bool read_v6(std::string_view text, std::array<std::uint8_t, 16>& out) noexcept
{
    if (text.size() > 45 || text.empty()) return false;
    std::size_t filled = 0, gap = out.size() + 1;  // 17: no `::` seen
    if (text[0] == ':') {
        if (!text.starts_with("::")) return false;
        gap = 0;
        text.remove_prefix(2);
    }
    while (!text.empty()) {
        const auto colon = text.find(':');
        const auto group = text.substr(0, colon);
        if (colon == text.npos && group.find('.') != group.npos)
            return filled <= 12 && read_v4(group, &out[filled]) && spread(out, filled + 4, gap);
        const auto value = hex_group(group);
        if (value < 0 || filled == out.size()) return false;
        out[filled++] = static_cast<std::uint8_t>(value >> 8);
        out[filled++] = static_cast<std::uint8_t>(value & 0xff);
        if (colon == text.npos) break;
        text.remove_prefix(colon + 1);
        if (text.empty()) return false;
        if (text[0] != ':') continue;
        if (gap <= out.size()) return false;
        gap = filled;
        text.remove_prefix(1);
    }
    return spread(out, filled, gap);
}

/// The characters of RFC 6874's ZoneID, without percent-encoding.
constexpr bool is_zone(std::string_view text) noexcept
{
    constexpr std::string_view others = ".-_~";
    if (text.empty() || text.size() > 64) return false;
    for (const char c : text) {
        const char lower = static_cast<char>(c | 0x20);
        if (!is_digit(c) && (lower < 'a' || lower > 'z') && others.find(c) == others.npos)
            return false;
    }
    return true;
}

}  // namespace detail

constexpr address address::from_v4(const std::array<std::uint8_t, 4>& b) noexcept
{
    return {ip_family::v4, detail::big_endian(b.data(), 4) << 32, 0};
}

constexpr address address::from_v6(const std::array<std::uint8_t, 16>& b) noexcept
{
    const auto high = detail::big_endian(b.data(), 8), low = detail::big_endian(&b[8], 8);
    if (high == 0 && low >> 32 == 0xffff) return {ip_family::v4, low << 32, 0};
    return {ip_family::v6, high, low};
}

constexpr std::optional<address> address::parse(std::string_view text) noexcept
{
    if (std::array<std::uint8_t, 4> v4{}; detail::read_v4(text, v4.data())) return from_v4(v4);

    if (const auto percent = text.find('%'); percent != text.npos) {
        if (!detail::is_zone(text.substr(percent + 1))) return std::nullopt;
        text = text.substr(0, percent);
    }
    if (std::array<std::uint8_t, 16> v6{}; detail::read_v6(text, v6)) return from_v6(v6);
    return std::nullopt;
}

constexpr std::optional<address> address::parse_endpoint(std::string_view text) noexcept
{
    if (text.size() > 128) return std::nullopt;
    const auto colon    = text.rfind(':');
    const auto port     = colon == text.npos ? std::string_view() : text.substr(colon + 1);
    const bool has_port = detail::decimal(port, 5, 65535) >= 0;
    const auto unported = text.substr(0, colon);
    if (text.starts_with('[')) {
        if (has_port && unported.ends_with(']')) text = unported;
        if (!text.ends_with(']')) return std::nullopt;
        const auto found = parse(text.substr(1, text.size() - 2));
        return text.find(':') != text.npos ? found : std::nullopt;  // "[1.2.3.4]" is no address
    }
    // A bare IPv6 address has two colons at least, so one colon divides an IPv4 address and a port.
    return parse(has_port && text.find(':') == colon ? unported : text);
}

constexpr std::array<std::uint8_t, 16> address::bytes() const noexcept
{
    std::array<std::uint8_t, 16> out{};
    for (unsigned i = 0; i < 8; ++i) {
        out[i]     = static_cast<std::uint8_t>(high_ >> (56 - 8 * i));
        out[i + 8] = static_cast<std::uint8_t>(low_ >> (56 - 8 * i));
    }
    return out;
}

constexpr address address::masked(int prefix) const noexcept
{
    const auto kept = [](int bits) -> std::uint64_t {
        if (bits <= 0) return 0;
        return bits >= 64 ? ~std::uint64_t{0} : ~std::uint64_t{0} << (64 - bits);
    };
    return {family_, high_ & kept(prefix), low_ & kept(prefix - 64)};
}

inline std::string to_string(const address& of)
{
    const auto  bytes = of.bytes();
    std::string text;
    if (of.is_v4()) {
        for (std::size_t i = 0; i < 4; ++i) text.append(i ? "." : "").append(std::to_string(bytes[i]));
        return text;
    }
    const auto  group = [&](std::size_t i) { return bytes[2 * i] << 8 | bytes[2 * i + 1]; };
    std::size_t gap = 8, longest = 1;  // the longest run of zero groups, of two at least
    for (std::size_t from = 0, to; from < 8; from = to + 1) {
        for (to = from; to < 8 && group(to) == 0;) ++to;
        if (to - from > longest) gap = from, longest = to - from;
    }
    for (std::size_t i = 0; i < 8; ++i) {
        if (i == gap) {
            text += "::";
            i += longest - 1;
            continue;
        }
        if (i != 0 && text.back() != ':') text += ':';
        bool leading = true;
        for (int shift = 12; shift >= 0; shift -= 4) {
            const auto digit = static_cast<unsigned>(group(i) >> shift & 0xf);
            if (digit == 0 && leading && shift != 0) continue;
            leading = false;
            text += "0123456789abcdef"[digit];
        }
    }
    return text;
}

}  // namespace weir
