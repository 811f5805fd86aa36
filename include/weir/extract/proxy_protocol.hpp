// SPDX-License-Identifier: BSL-1.0
#pragma once

// The PROXY protocol, versions 1 and 2 (haproxy, doc/proxy-protocol.txt): what a proxy sends ahead
// of a connection to say whom it heard from. Read it only on a port that is configured to expect it
// and only from a peer that is a proxy of your own: anybody can write one. It stands before TLS.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/extract/address.hpp"
#include "weir/extract/crc32c.hpp"
#include "weir/extract/forwarded.hpp"
#include "weir/extract/request.hpp"

namespace weir {

enum class proxy_state : std::uint8_t {
    need_more,  ///< So far it is the beginning of a header.
    rejected,   ///< It is none, whatever follows: close the connection.
    accepted,
};

/// Why a header was rejected.
enum class proxy_fault : std::uint8_t {
    no_signature,     ///< It begins like neither version.
    bad_line,         ///< Version 1 does not allow this line.
    line_too_long,    ///< Version 1: no CRLF within 107 bytes.
    unknown_command,  ///< Not version 2, or neither LOCAL nor PROXY.
    too_long,         ///< Version 2: longer than `most_bytes`.
    bad_length,       ///< Version 2: too short for the addresses of its family.
    bad_tlv,          ///< Version 2: what follows the addresses does not fill the header exactly.
    bad_checksum,     ///< Version 2: the CRC32c it carries is not its own.
};

/// The fault's name, for logs.
[[nodiscard]] constexpr std::string_view name(proxy_fault why) noexcept;

/// One end of the proxied connection. A Unix socket has no port and its path is not kept.
struct proxy_end {
    peer          at   = {};
    std::uint16_t port = 0;

    friend constexpr bool operator==(const proxy_end&, const proxy_end&) = default;
};

struct proxy_header {
    std::size_t consumed = 0;  ///< Bytes of the header. What follows them is the client's.

    /// Nobody is named (LOCAL, UNKNOWN, a family without addresses): the socket's own peer stands.
    bool local = true;

    proxy_end source      = {};  ///< Who connected to the proxy.
    proxy_end destination = {};  ///< To what.

    /// Who is calling, for `request_facts`.
    [[nodiscard]] constexpr weir::peer peer_behind(const weir::peer& socket) const noexcept
    {
        return local ? socket : source.at;
    }

    friend constexpr bool operator==(const proxy_header&, const proxy_header&) = default;
};

struct proxy_reading {
    proxy_state state = proxy_state::need_more;

    /// While more is needed: no header that begins like this has fewer bytes in total, so up to
    /// so many can be read without touching what the client sent.
    std::size_t                wanted = 0;
    std::optional<proxy_fault> fault  = {};  ///< If rejected.
    proxy_header               header = {};  ///< If accepted.

    friend constexpr bool operator==(const proxy_reading&, const proxy_reading&) = default;
};

struct proxy_options {
    /// The longest header of version 2, its 16 fixed bytes included. 536 are what any IPv4 path
    /// carries in one piece; a certificate in a TLV needs more. Below 28 no address fits.
    std::size_t most_bytes = 536;
};

/// Reads a header off the beginning of a connection. `stream` is all that has arrived so far, from
/// its first byte; while more is needed, call again with more. An answer other than `need_more`
/// stays the same whatever follows, so it does not matter how the bytes were split.
///
/// Strict: version 1 with single spaces, no leading zeros, no zone ids, CRLF at the end; version 2
/// with TLVs that fill it exactly and a CRC32c that is right if there is one. A header that names
/// nobody is passed over by its length, its TLVs unread. Linear in the bytes of the header, which
/// are at most 107 or `most_bytes`; keeps nothing, allocates nothing.
[[nodiscard]] constexpr proxy_reading read_proxy_header(std::string_view     stream,
                                                        const proxy_options& options = {}) noexcept;

// ---------------------------------------------------------------------------------------------

constexpr std::string_view name(proxy_fault why) noexcept
{
    switch (why) {
    case proxy_fault::no_signature: return "no_signature";
    case proxy_fault::bad_line: return "bad_line";
    case proxy_fault::line_too_long: return "line_too_long";
    case proxy_fault::unknown_command: return "unknown_command";
    case proxy_fault::too_long: return "too_long";
    case proxy_fault::bad_length: return "bad_length";
    case proxy_fault::bad_tlv: return "bad_tlv";
    case proxy_fault::bad_checksum: return "bad_checksum";
    }
    return "unnamed";
}

namespace detail {

inline constexpr std::string_view proxy_v1_signature = "PROXY ";
inline constexpr std::string_view proxy_v2_signature("\r\n\r\n\0\r\nQUIT\n", 12);

constexpr proxy_reading proxy_wants(std::size_t bytes) noexcept
{
    return {.state = proxy_state::need_more, .wanted = bytes};
}

constexpr proxy_reading proxy_rejects(proxy_fault why) noexcept
{
    return {.state = proxy_state::rejected, .fault = why};
}

constexpr proxy_reading proxy_accepts(const proxy_header& found) noexcept
{
    return {.state = proxy_state::accepted, .header = found};
}

/// Up to the next space, which is taken too.
constexpr std::string_view take_word(std::string_view& line) noexcept
{
    const auto word = take(line, line.find(' '));
    line.remove_prefix(line.empty() ? 0 : 1);
    return word;
}

constexpr std::optional<proxy_end> proxy_text_end(std::string_view ip, std::string_view port,
                                                  bool is_v6) noexcept
{
    const int  number = decimal(port, 5, 65535);
    const auto at     = address::parse(ip);
    if (number < 0 || (port.size() > 1 && port[0] == '0') || !at) return std::nullopt;
    // By its text, since an IPv4-mapped address may stand in a line of IPv6.
    if (is_v6 != (ip.find(':') != ip.npos) || ip.find('%') != ip.npos) return std::nullopt;
    return proxy_end{*at, static_cast<std::uint16_t>(number)};
}

/// A whole line of version 1, without its CRLF.
constexpr proxy_reading read_proxy_line(std::string_view line) noexcept
{
    const auto consumed = line.size() + 2;
    line.remove_prefix(proxy_v1_signature.size());
    const auto protocol = take_word(line);
    if (protocol == "UNKNOWN") return proxy_accepts({.consumed = consumed});

    const auto from = take_word(line), to = take_word(line), from_port = take_word(line);
    const auto source      = proxy_text_end(from, from_port, protocol == "TCP6");
    const auto destination = proxy_text_end(to, line, protocol == "TCP6");
    if ((protocol != "TCP4" && protocol != "TCP6") || !source || !destination)
        return proxy_rejects(proxy_fault::bad_line);
    return proxy_accepts({consumed, false, *source, *destination});
}

constexpr proxy_reading read_proxy_v1(std::string_view stream) noexcept
{
    constexpr std::size_t least = 15, most = 107;  // "PROXY UNKNOWN\r\n"; two full IPv6 addresses
    const auto end = stream.substr(0, most - 1).find_first_of("\r\n");
    if (end == stream.npos)
        return stream.size() + 2 <= most ? proxy_wants(std::max(least, stream.size() + 2))
                                         : proxy_rejects(proxy_fault::line_too_long);
    if (stream[end] == '\n') return proxy_rejects(proxy_fault::bad_line);
    if (end + 1 == stream.size()) return proxy_wants(std::max(least, end + 2));
    if (stream[end + 1] != '\n') return proxy_rejects(proxy_fault::bad_line);
    return read_proxy_line(stream.substr(0, end));
}

template <std::size_t Count>
constexpr std::array<std::uint8_t, Count> octets(std::string_view from, std::size_t at) noexcept
{
    std::array<std::uint8_t, Count> out{};
    for (std::size_t i = 0; i < Count; ++i) out[i] = static_cast<std::uint8_t>(from[at + i]);
    return out;
}

constexpr std::size_t proxy_number(std::string_view from, std::size_t at) noexcept
{
    return static_cast<std::size_t>(big_endian(octets<2>(from, at).data(), 2));
}

/// Whether the four bytes at `at` are the checksum of the header with zeros in their place.
constexpr bool has_own_checksum(std::string_view header, std::size_t at) noexcept
{
    const auto own = crc32c()
                         .feed(header.substr(0, at))
                         .feed(std::string_view("\0\0\0\0", 4))
                         .feed(header.substr(at + 4));
    return own.value() == big_endian(octets<4>(header, at).data(), 4);
}

constexpr std::optional<proxy_fault> tlv_fault(std::string_view header, std::size_t at) noexcept
{
    constexpr char             checksum = 3;
    std::optional<std::size_t> sum;
    while (at < header.size()) {
        if (header.size() - at < 3) return proxy_fault::bad_tlv;
        const auto length = proxy_number(header, at + 1);
        if (length > header.size() - at - 3) return proxy_fault::bad_tlv;
        if (header[at] == checksum) {
            if (length != 4 || sum) return proxy_fault::bad_tlv;
            sum = at + 3;
        }
        at += 3 + length;
    }
    if (sum && !has_own_checksum(header, *sum)) return proxy_fault::bad_checksum;
    return std::nullopt;
}

/// Bytes of one address of a family and transport; 0 where none is defined.
constexpr std::size_t proxy_address_bytes(std::uint8_t family) noexcept
{
    switch (family) {
    case 0x11:
    case 0x12: return 4;
    case 0x21:
    case 0x22: return 16;
    case 0x31:
    case 0x32: return 108;  // a path
    default: return 0;
    }
}

/// The end whose address stands at `at`, its port at `port`.
constexpr proxy_end proxy_binary_end(std::string_view header, std::size_t at, std::size_t port,
                                     std::size_t bytes) noexcept
{
    if (bytes == 108) return {peer::unix_socket()};
    return {bytes == 4 ? address::from_v4(octets<4>(header, at))
                       : address::from_v6(octets<16>(header, at)),
            static_cast<std::uint16_t>(proxy_number(header, port))};
}

constexpr proxy_reading read_proxy_v2(std::string_view stream, std::size_t most) noexcept
{
    constexpr std::size_t fixed = 16;
    if (stream.size() < fixed) return proxy_wants(fixed);
    const auto command = octets<2>(stream, 12);
    const auto total   = fixed + proxy_number(stream, 14);
    if (command[0] != 0x20 && command[0] != 0x21)
        return proxy_rejects(proxy_fault::unknown_command);
    if (total > most) return proxy_rejects(proxy_fault::too_long);

    const auto bytes = command[0] == 0x20 ? 0 : proxy_address_bytes(command[1]);
    const auto ports = fixed + 2 * bytes, end = ports + (bytes == 4 || bytes == 16 ? 4 : 0);
    if (end > total) return proxy_rejects(proxy_fault::bad_length);
    if (stream.size() < total) return proxy_wants(total);

    const auto header = stream.substr(0, total);
    if (bytes == 0) return proxy_accepts({.consumed = total});
    if (const auto fault = tlv_fault(header, end)) return proxy_rejects(*fault);
    return proxy_accepts({total, false, proxy_binary_end(header, fixed, ports, bytes),
                          proxy_binary_end(header, fixed + bytes, ports + 2, bytes)});
}

}  // namespace detail

constexpr proxy_reading read_proxy_header(std::string_view     stream,
                                          const proxy_options& options) noexcept
{
    const auto begins = [&](std::string_view signature) {
        const auto common = std::min(stream.size(), signature.size());
        return stream.substr(0, common) == signature.substr(0, common);
    };
    if (stream.empty()) return detail::proxy_wants(15);  // the shortest of version 1
    if (begins(detail::proxy_v1_signature)) return detail::read_proxy_v1(stream);
    if (begins(detail::proxy_v2_signature))
        return detail::read_proxy_v2(stream, options.most_bytes);
    return detail::proxy_rejects(proxy_fault::no_signature);
}

}  // namespace weir
