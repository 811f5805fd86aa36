// SPDX-License-Identifier: BSL-1.0
#pragma once

// Hellos built for a test, and the files of vectors/hellos.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace reference {

inline std::string big_endian(std::uint64_t number, int bytes)
{
    std::string out;
    while (bytes-- > 0) out += static_cast<char>(number >> 8 * bytes & 0xff);
    return out;
}

/// `bytes` behind their length.
inline std::string block(const std::string& bytes, int width)
{
    return big_endian(bytes.size(), width) + bytes;
}

inline std::string codes(const std::vector<std::uint16_t>& all)
{
    std::string out;
    for (const auto one : all) out += big_endian(one, 2);
    return out;
}

struct extension {
    std::uint16_t type = 0;
    std::string   data = {};
};

/// The extensions whose data is read.
inline extension server_name(const std::string& name)
{
    return {0, block('\0' + block(name, 2), 2)};
}
inline extension versions(const std::vector<std::uint16_t>& all)
{
    return {43, block(codes(all), 1)};
}
inline extension signatures(const std::vector<std::uint16_t>& all)
{
    return {13, block(codes(all), 2)};
}
/// `names` with the length before each.
inline extension protocols(const std::string& names) { return {16, block(names, 2)}; }

struct made_hello {
    std::uint16_t              version    = 0x0303;
    std::string                session_id = {};
    std::string                cookie     = {};  ///< DTLS only.
    std::vector<std::uint16_t> ciphers    = {0x1301, 0xc02f};
    std::vector<extension>     extensions = {};

    [[nodiscard]] std::string body(bool dtls = false) const
    {
        std::string all;
        for (const auto& one : extensions) all += big_endian(one.type, 2) + block(one.data, 2);
        auto out = big_endian(version, 2) + std::string(32, 'r') + block(session_id, 1);
        if (dtls) out += block(cookie, 1);
        out += block(codes(ciphers), 2) + block(std::string(1, '\0'), 1);
        return all.empty() ? out : out + block(all, 2);
    }
    [[nodiscard]] std::string message() const { return '\1' + block(body(), 3); }
    [[nodiscard]] std::string dtls_message() const
    {
        const auto all = body(true);
        return '\1' + big_endian(all.size(), 3) + std::string(5, '\0') + block(all, 3);
    }
};

/// A message in records of `most` bytes.
inline std::string records(const std::string& message, std::size_t most = 16'384)
{
    std::string out;
    for (std::size_t at = 0; at < message.size(); at += most)
        out += "\x16\x03\x01" + block(message.substr(at, most), 2);
    return out;
}

inline std::string from_hex(const std::string& text)
{
    std::string out;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        out += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
    return out;
}

/// A file of vectors/hellos; empty if there is none.
inline std::string hello_file(const std::string& name)
{
    std::ifstream file(std::string(WEIR_VECTORS_DIR) + "/hellos/" + name);
    std::string   text;
    file >> text;
    return from_hex(text);
}

}  // namespace reference
