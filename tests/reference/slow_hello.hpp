// SPDX-License-Identifier: BSL-1.0
#pragma once

// A ClientHello and its fingerprints read slowly, whole and by other means than the library, and
// whether what the library says of a stream holds however its bytes arrive. Shared by the property
// test and the fuzz targets.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/random.hpp"
#include "weir/extract/ja4.hpp"
#include "weir/extract/tls_records.hpp"

namespace reference {

/// FIPS 180-4, one word at a time.
inline std::string slow_sha256(std::string text)
{
    static const std::array<std::uint32_t, 64> k = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    std::array<std::uint32_t, 8> sum = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const auto turn = [](std::uint32_t x, int by) { return x >> by | x << (32 - by); };
    const auto bits = std::uint64_t{text.size()} * 8;
    text += '\x80';
    while (text.size() % 64 != 56) text += '\0';
    for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bits >> shift & 0xff);

    for (std::size_t block = 0; block < text.size(); block += 64) {
        std::array<std::uint32_t, 64> w{};
        for (std::size_t i = 0; i < 64; ++i)
            w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(text[block + i]);
        for (std::size_t i = 16; i < 64; ++i)
            w[i] = w[i - 16] + w[i - 7] +
                   (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
                   (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
        auto s = sum;
        for (std::size_t i = 0; i < 64; ++i) {
            const auto a = s[0], e = s[4];
            const auto one = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                             ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
            const auto two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                             ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
            s = {one + two, a, s[1], s[2], s[3] + one, e, s[5], s[6]};
        }
        for (std::size_t i = 0; i < 8; ++i) sum[i] += s[i];
    }
    std::string out;
    for (const auto word : sum)
        for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
    return out;
}

/// A block behind a length of `width` bytes at the beginning of `from`, which it is cut off; none
/// if it is not all there.
inline std::optional<std::string> cut_block(std::string& from, std::size_t width)
{
    if (from.size() < width) return std::nullopt;
    std::size_t length = 0;
    for (std::size_t i = 0; i < width; ++i) length = length * 256 + std::uint8_t(from[i]);
    if (from.size() < width + length) return std::nullopt;
    auto block = from.substr(width, length);
    from.erase(0, width + length);
    return block;
}

/// Each two bytes as four digits; GREASE (equal bytes ending in a) is left out.
inline std::vector<std::string> texts(const std::string& bytes)
{
    static const char* const digits = "0123456789abcdef";
    std::vector<std::string> out;
    for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
        std::string text;
        for (std::size_t j : {i, i + 1}) {
            text += digits[std::uint8_t(bytes[j]) / 16U];
            text += digits[std::uint8_t(bytes[j]) % 16U];
        }
        if (text[1] != 'a' || text.substr(0, 2) != text.substr(2)) out.push_back(text);
    }
    return out;
}

inline std::string joined(const std::vector<std::string>& all)
{
    std::string out;
    for (const auto& one : all) out += (out.empty() ? "" : ",") + one;
    return out;
}

/// The list of an extension behind a length of `width` bytes; none if its lengths do not fit.
inline std::optional<std::string> only_block(std::string data, std::size_t width)
{
    auto list = cut_block(data, width);
    if (!data.empty()) return std::nullopt;
    return list;
}

inline std::string slow_version(const std::string& newest)
{
    static const std::vector<std::pair<std::string, std::string>> all = {
        {"0304", "13"}, {"0303", "12"}, {"0302", "11"}, {"0301", "10"}, {"0300", "s3"},
        {"0002", "s2"}, {"feff", "d1"}, {"fefd", "d2"}, {"fefc", "d3"}};
    for (const auto& [version, digits] : all)
        if (version == newest) return digits;
    return "00";
}

inline std::string slow_protocol(const std::string& name)
{
    if (name.empty()) return "00";
    const auto plain = [](char c) {
        const std::string all = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        return all.find(c) != all.npos;
    };
    if (plain(name.front()) && plain(name.back())) return {name.front(), name.back()};
    static const char* const digits = "0123456789abcdef";
    return {digits[std::uint8_t(name.front()) / 16U], digits[std::uint8_t(name.back()) % 16U]};
}

/// The parts of a hello, in bytes as they were sent.
struct hello_parts {
    std::string                legacy = {}, ciphers = {}, types = {};
    std::optional<std::string> versions = {}, signatures = {}, protocol = {};
};

/// Takes down what the extension says, unless one of its type has; false if its lengths do not fit.
inline bool take_extension(hello_parts& parts, const std::string& type, const std::string& data)
{
    parts.types += type;
    if (type == std::string("\0\x2b", 2) || type == std::string("\0\x0d", 2)) {
        const auto list = only_block(data, type[1] == 0x2b ? 1 : 2);
        auto&      kept = type[1] == 0x2b ? parts.versions : parts.signatures;
        if (!kept) kept = list;
        return list && list->size() % 2 == 0;
    }
    if (type == std::string("\0\x10", 2)) {
        auto                     names = only_block(data, 2);
        std::vector<std::string> all;
        while (names && !names->empty()) {
            const auto name = cut_block(*names, 1);
            if (!name) return false;
            all.push_back(*name);
        }
        if (!parts.protocol) parts.protocol = all.empty() ? "" : all.front();
        return names.has_value();
    }
    return true;
}

/// None if the body is malformed.
inline std::optional<hello_parts> slow_parts(std::string body, char transport)
{
    hello_parts parts;
    if (body.size() < 34) return std::nullopt;
    parts.legacy = body.substr(0, 2);
    body.erase(0, 34);
    const auto session = cut_block(body, 1);
    if (!session || session->size() > 32) return std::nullopt;
    if (transport == 'd' && !cut_block(body, 1)) return std::nullopt;
    const auto ciphers = cut_block(body, 2);
    if (!ciphers || ciphers->size() % 2 != 0 || !cut_block(body, 1)) return std::nullopt;
    parts.ciphers = *ciphers;
    if (body.empty()) return parts;

    auto rest = only_block(body, 2);
    if (!rest) return std::nullopt;
    while (!rest->empty()) {
        const auto type = rest->substr(0, 2);
        rest->erase(0, 2);
        const auto data = cut_block(*rest, 2);
        if (!data || !take_extension(parts, type, *data)) return std::nullopt;
    }
    return parts;
}

inline std::string slow_outline(const hello_parts& parts, char transport,
                                const std::vector<std::string>& counted)
{
    const auto number = [](std::size_t count) {
        const auto text = std::to_string(std::min<std::size_t>(count, 99));
        return text.size() < 2 ? '0' + text : text;
    };
    auto offered = texts(parts.versions.value_or(parts.legacy));
    std::sort(offered.begin(), offered.end());
    if (transport == 'd') std::reverse(offered.begin(), offered.end());
    const auto types = texts(parts.types);
    const bool named = std::find(types.begin(), types.end(), "0000") != types.end();
    return transport + slow_version(offered.empty() ? "" : offered.back()) + (named ? 'd' : 'i') +
           number(texts(parts.ciphers).size()) + number(counted.size()) +
           slow_protocol(parts.protocol.value_or(""));
}

/// One form: of the extensions that are counted, sorted or not, with digests or not; and a line
/// end.
inline std::string slow_form(const hello_parts& parts, char transport,
                             const std::vector<std::string>& counted, bool sorted, bool raw)
{
    auto b = texts(parts.ciphers), c = counted;
    if (sorted) {
        std::sort(b.begin(), b.end());
        std::sort(c.begin(), c.end());
        c.erase(std::remove(c.begin(), c.end(), "0000"), c.end());
        c.erase(std::remove(c.begin(), c.end(), "0010"), c.end());
    }
    auto       behind    = joined(c);
    const auto signed_by = joined(texts(parts.signatures.value_or("")));
    if (!signed_by.empty()) behind += '_' + signed_by;
    const auto shown = [&](const std::string& text) {
        if (raw) return text;
        return text.empty() ? std::string(12, '0') : slow_sha256(text).substr(0, 12);
    };
    return slow_outline(parts, transport, counted) + '_' + shown(joined(b)) + '_' + shown(behind) +
           '\n';
}

/// Of a body: JA4, JA4_o, the stable key, JA4_r and JA4_ro, a line each; none if it is malformed.
inline std::optional<std::string> slow_fingerprints(const std::string& body, char transport)
{
    const auto parts = slow_parts(body, transport);
    if (!parts) return std::nullopt;
    const auto all    = texts(parts->types);
    auto       stable = all;
    for (const auto* guest : {"0015", "0023", "0029", "002a"})
        stable.erase(std::remove(stable.begin(), stable.end(), guest), stable.end());
    return slow_form(*parts, transport, all, true, false) +
           slow_form(*parts, transport, all, false, false) +
           slow_form(*parts, transport, stable, true, false) +
           slow_form(*parts, transport, all, true, true) +
           slow_form(*parts, transport, all, false, true);
}

/// What handshake bytes begin with: `need_more`, the name of a fault, or the fingerprints.
inline std::string slow_hello(const std::string& stream, char transport, std::size_t most)
{
    if (stream.empty()) return "need_more";
    if (stream[0] != 1) return "not_client_hello";
    if (stream.size() < 4) return "need_more";
    const auto number = [&](std::size_t at) {
        return std::uint8_t(stream[at]) * 65536U + std::uint8_t(stream[at + 1]) * 256U +
               std::uint8_t(stream[at + 2]);
    };
    const std::size_t head = transport == 'd' ? 12 : 4, length = number(1);
    if (length + head > most) return "too_long";
    if (stream.size() < head) return "need_more";
    if (transport == 'd' && (number(6) != 0 || number(9) != length)) return "fragmented";
    if (stream.size() < head + length) return "need_more";
    return slow_fingerprints(stream.substr(head, length), transport).value_or("malformed");
}

/// The same of the records of a connection.
inline std::string slow_records(const std::string& stream, std::size_t most)
{
    std::string message;
    for (std::size_t at = 0;;) {
        if (at < stream.size() && stream[at] != 22) return "not_tls";
        if (at + 1 < stream.size() && stream[at + 1] != 3) return "not_tls";
        if (at + 5 > stream.size()) return "need_more";
        const auto length = std::uint8_t(stream[at + 3]) * 256U + std::uint8_t(stream[at + 4]);
        if (length == 0 || length > 16384) return "bad_record";
        for (at += 5; const char byte : stream.substr(at, length)) {
            message += byte;
            const auto says = slow_hello(message, 't', most);
            if (says != "need_more") return says;
        }
        at += length;
    }
}

/// What the library says of a hello, in the words of the reference.
inline std::string words(const weir::client_hello& hello)
{
    const auto raw = [&](auto form) {
        std::string out(form(hello, {}), '\0');
        form(hello, out);
        return out;
    };
    return std::string(ja4(hello).bytes()) + '\n' + std::string(ja4_o(hello).bytes()) + '\n' +
           std::string(stable_key(hello).bytes()) + '\n' + raw(weir::ja4_r) + '\n' +
           raw(weir::ja4_ro) + '\n';
}

inline std::string words(const weir::hello_reading& reading)
{
    if (reading.state == weir::hello_state::need_more) return "need_more";
    if (reading.fault) return std::string(name(*reading.fault));
    return words(reading.hello);
}

inline std::string words(const weir::tls_records& records)
{
    if (records.state() == weir::hello_state::need_more) return "need_more";
    if (records.fault()) return std::string(name(*records.fault()));
    return words(*records.hello());
}

/// What is wrong with what the library says of handshake bytes, and of beginnings drawn from them.
inline std::string wrong_hello(const std::string& stream, char transport, std::size_t most,
                               generator& random)
{
    const auto                kind = transport == 'd'   ? weir::hello_transport::dtls
                                     : transport == 'q' ? weir::hello_transport::quic
                                                        : weir::hello_transport::tls;
    const weir::hello_options options{.transport = kind, .most_bytes = most};
    const auto                all  = weir::read_client_hello(stream, options);
    const auto                says = words(all);
    if (says != slow_hello(stream, transport, most)) return "not what the slow reading says";
    for (int i = 0; i < 4 && !stream.empty(); ++i) {
        // A copy of its own, so that a sanitizer sees a read past its end.
        const std::string part(stream, 0, random() % stream.size());
        const auto        reading = weir::read_client_hello(part, options);
        if (reading.state == weir::hello_state::need_more && reading.bytes <= part.size())
            return "wants no more";
        if (words(reading) != slow_hello(part, transport, most))
            return "a beginning says otherwise";
        if (all.state == weir::hello_state::complete && part.size() < all.bytes &&
            reading.state != weir::hello_state::need_more)
            return "a beginning of a hello is no beginning of one";
    }
    return {};
}

/// The same of records, fed in pieces that are drawn.
inline std::string wrong_records(const std::string& stream, std::size_t most, generator& random)
{
    const auto        expected = slow_records(stream, most);
    std::vector<char> room(most);
    weir::tls_records whole(room);
    whole.feed(stream);
    if (words(whole) != expected) return "not what the slow reading says";

    std::vector<char> other(most);
    weir::tls_records pieces(other);
    bool              ended   = false;
    const auto        longest = 1 + random() % 64;
    for (std::size_t at = 0; at < stream.size();) {
        const std::string piece(stream, at, 1 + random() % longest);
        at += piece.size();
        const auto state = pieces.feed(piece);
        if (ended && state == weir::hello_state::need_more) return "an answer did not stay";
        ended = state != weir::hello_state::need_more;
    }
    if (words(pieces) != expected) return "pieces say otherwise";
    if (!whole.fault() && pieces.message() != whole.message()) return "pieces make another message";
    return {};
}

}  // namespace reference
