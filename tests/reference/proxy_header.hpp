// SPDX-License-Identifier: BSL-1.0
#pragma once

// A PROXY protocol header read slowly, whole and by other means than the library, and whether what
// the library says of a stream holds what is promised of every answer. Shared by the property test
// and the fuzz target.

#include <algorithm>
#include <arpa/inet.h>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/client_walk.hpp"
#include "weir/extract/proxy_protocol.hpp"

namespace reference {

/// What a stream begins with, in words: `accepted 9.9.9.9 80 > 10.0.0.1 443`, `local`, `rejected`,
/// or nothing yet.
struct proxy_words {
    std::string says     = {};
    std::size_t consumed = 0;

    friend bool operator==(const proxy_words&, const proxy_words&) = default;
};

inline std::string packet_text(const packet_address& at)
{
    std::string out;
    for (const auto byte : at) out += std::to_string(byte) + '.';
    return out;
}

/// An IPv4-mapped address is the IPv4 address here too.
inline std::string binary_text(const std::string& bytes)
{
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
    return packet_text(read_address(text).value());
}

inline proxy_words proxy_line(const std::string& line)
{
    std::vector<std::string> words(1);
    for (const char c : line) {
        if (c == ' ') words.emplace_back();
        else words.back() += c;
    }
    if (words.size() > 1 && words[1] == "UNKNOWN") return {"local", line.size() + 2};

    const bool v4 = words.size() == 6 && words[1] == "TCP4";
    if (!v4 && !(words.size() == 6 && words[1] == "TCP6")) return {"rejected"};
    for (std::size_t i : {2U, 3U})
        if (!read_address(words[i]) || (words[i].find(':') == std::string::npos) != v4 ||
            words[i].find('%') != std::string::npos)
            return {"rejected"};
    for (std::size_t i : {4U, 5U})
        if (!is_port(words[i]) || std::to_string(std::stoi(words[i])) != words[i])
            return {"rejected"};
    return {"accepted " + packet_text(*read_address(words[2])) + ' ' + words[4] + " > " +
                packet_text(*read_address(words[3])) + ' ' + words[5],
            line.size() + 2};
}

/// The remainder of a division of polynomials, one bit at a time, with the bits of each byte turned
/// round as CRC32c has them.
inline std::uint32_t slow_crc32c(const std::string& bytes)
{
    std::uint32_t rest = ~0U, out = 0;
    for (const char c : bytes)
        for (int bit = 0; bit < 8; ++bit) {
            const auto in = static_cast<std::uint32_t>(static_cast<unsigned char>(c) >> bit & 1);
            rest = (rest >> 31 ^ in) != 0 ? rest << 1 ^ 0x1edc6f41U : rest << 1;
        }
    for (int bit = 0; bit < 32; ++bit) out |= (~rest >> bit & 1) << (31 - bit);
    return out;
}

inline std::uint32_t number_of(const std::string& bytes)
{
    std::uint32_t out = 0;
    for (const char c : bytes) out = out << 8 | static_cast<unsigned char>(c);
    return out;
}

/// Whether the TLVs fill the header and its checksum, if any, is its own.
inline bool tlvs_hold(const std::string& header, std::size_t at)
{
    int sums = 0;
    for (std::size_t next = at; at < header.size(); at = next) {
        if (at + 3 > header.size()) return false;
        next = at + 3 + number_of(header.substr(at + 1, 2));
        if (next > header.size()) return false;
        if (header[at] != 3) continue;
        auto blank = header;
        if (next - at != 7 || ++sums > 1) return false;
        for (std::size_t i = at + 3; i < next; ++i) blank[i] = '\0';
        if (slow_crc32c(blank) != number_of(header.substr(at + 3, 4))) return false;
    }
    return true;
}

inline proxy_words proxy_block(const std::string& header)
{
    const bool local     = header[12] == 0x20;
    const int  family    = header[13] >> 4, transport = header[13] & 15;
    const bool described = family >= 1 && family <= 3 && (transport == 1 || transport == 2);
    if (local || !described) return {"local", header.size()};

    const std::size_t width = family == 1 ? 4 : family == 2 ? 16 : 108;
    const std::size_t ports = 16 + 2 * width, end = ports + (family == 3 ? 0U : 4U);
    if (header.size() < end || !tlvs_hold(header, end)) return {"rejected"};
    if (family == 3) return {"accepted unix 0 > unix 0", header.size()};
    return {"accepted " + binary_text(header.substr(16, width)) + ' ' +
                std::to_string(number_of(header.substr(ports, 2))) + " > " +
                binary_text(header.substr(16 + width, width)) + ' ' +
                std::to_string(number_of(header.substr(ports + 2, 2))),
            header.size()};
}

/// Of a stream that has ended: if the header is not whole, it says nothing.
inline proxy_words proxy_of(const std::string& stream, std::size_t most)
{
    const std::string v1 = "PROXY ", v2("\r\n\r\n\0\r\nQUIT\n", 12);
    if (v1.compare(0, v1.size(), stream, 0, v1.size()) == 0) {
        const auto line = stream.substr(0, 107);
        const auto lf = line.find('\n'), cr = line.find('\r');
        if (lf == line.npos && cr == line.npos) return {stream.size() < 106 ? "" : "rejected"};
        if (cr == line.npos || lf < cr) return {"rejected"};
        if (cr + 1 == line.size()) return {stream.size() < 107 ? "" : "rejected"};
        return lf == cr + 1 ? proxy_line(line.substr(0, cr)) : proxy_words{"rejected"};
    }
    if (v1.compare(0, stream.size(), stream) == 0 || v2.compare(0, stream.size(), stream) == 0)
        return {};
    if (v2.compare(0, v2.size(), stream, 0, v2.size()) != 0) return {"rejected"};
    if (stream.size() < 16) return {};
    const auto total = 16 + number_of(stream.substr(14, 2));
    if ((stream[12] != 0x20 && stream[12] != 0x21) || total > most) return {"rejected"};
    if (stream.size() >= total) return proxy_block(stream.substr(0, total));

    // It may be too short for its family already: what is missing cannot make it longer.
    const auto filled = stream + std::string(total - stream.size(), '\0');
    const auto width  = stream[13] >> 4 == 1 ? 12U : stream[13] >> 4 == 2 ? 36U : 216U;
    const bool fits   = total >= 16 + width || proxy_block(filled).says == "local";
    return {fits ? "" : "rejected"};
}

inline std::string end_text(const weir::proxy_end& end)
{
    if (end.at.is_unix_socket()) return "unix " + std::to_string(end.port);
    const auto     bytes = end.at.address().value().bytes();
    packet_address at(bytes.begin(), bytes.begin() + (end.at.address()->is_v4() ? 4 : 16));
    return packet_text(at) + ' ' + std::to_string(end.port);
}

inline proxy_words words(const weir::proxy_reading& reading)
{
    if (reading.state == weir::proxy_state::rejected) return {"rejected"};
    if (reading.state == weir::proxy_state::need_more) return {};
    if (reading.header.local) return {"local", reading.header.consumed};
    return {"accepted " + end_text(reading.header.source) + " > " +
                end_text(reading.header.destination),
            reading.header.consumed};
}

/// The header as version 1 would have written it; empty if it has no words for it.
inline std::string as_line(const weir::proxy_header& header)
{
    if (header.local) return "PROXY UNKNOWN\r\n";
    const auto from = header.source.at.address(), to = header.destination.at.address();
    if (!from || !to || from->is_v4() != to->is_v4()) return {};
    return std::string("PROXY TCP") + (from->is_v4() ? "4 " : "6 ") + to_string(*from) + ' ' +
           to_string(*to) + ' ' + std::to_string(header.source.port) + ' ' +
           std::to_string(header.destination.port) + "\r\n";
}

/// What is wrong with what the library says of a stream, and of each of its beginnings.
inline std::string wrong_proxy(const std::string& stream, std::size_t most)
{
    using weir::proxy_state;
    const weir::proxy_options options{most};
    const auto                all    = weir::read_proxy_header(stream, options);
    std::size_t               wanted = 0;
    for (std::size_t arrived = 0; arrived <= stream.size(); ++arrived) {
        const auto part    = stream.substr(0, arrived);
        const auto reading = weir::read_proxy_header(part, options);
        if (words(reading) != proxy_of(part, most)) return "not what the slow reading says";
        if ((reading.state == proxy_state::rejected) != reading.fault.has_value())
            return "a fault without a rejection, or the other way round";
        if (reading.state != proxy_state::need_more) {
            if (reading != all) return "bytes behind the answer changed it";
            if (all.state != proxy_state::accepted) return {};
            if (all.header.consumed != arrived || wanted > arrived) return "read too far";
            break;
        }
        if (reading.wanted <= arrived || reading.wanted < wanted) return "wants no more";
        wanted = reading.wanted;
        if (wanted > std::max<std::size_t>(most, 107)) return "wants more than the most";
    }
    if (all.state != proxy_state::accepted) return {};
    const auto line = as_line(all.header);
    if (line.empty()) return {};
    auto again     = weir::read_proxy_header(line, options).header;
    again.consumed = all.header.consumed;
    return again == all.header ? "" : "its line reads otherwise";
}

}  // namespace reference
