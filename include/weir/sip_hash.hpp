// SPDX-License-Identifier: BSL-1.0
#pragma once

// SipHash-1-3 with 128-bit output: a keyed hash that is fast on short input and whose collisions
// cannot be prepared without the seed (Aumasson and Bernstein, "SipHash: a fast short-input PRF",
// 2012; the 128-bit form is that of the authors' reference code).

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace weir {

/// The secret that makes a hash unpredictable: 128 bits.
struct hash_seed {
    std::uint64_t low  = 0;
    std::uint64_t high = 0;

    /// A seed of this process, drawn from the system's entropy at first use. Thread-safe.
    [[nodiscard]] static const hash_seed& of_process();

    friend constexpr bool operator==(const hash_seed&, const hash_seed&) = default;
};

/// The 128 bits that come out.
struct hash_value {
    std::uint64_t low  = 0;
    std::uint64_t high = 0;

    friend constexpr bool operator==(const hash_value&, const hash_value&) = default;
};

/// SipHash-1-3-128 as a value: feed it bytes, copy it where a common prefix ends, finish the copy.
/// O(bytes); not thread-safe while it is fed; copies are independent.
class sip_hash {
public:
    constexpr explicit sip_hash(const hash_seed& seed) noexcept
        : v0_(seed.low ^ 0x736f6d6570736575), v1_(seed.high ^ 0x646f72616e646f6d ^ 0xee),
          v2_(seed.low ^ 0x6c7967656e657261), v3_(seed.high ^ 0x7465646279746573)
    {
    }

    constexpr sip_hash& feed(std::string_view bytes) noexcept;

    /// Eight bytes, the lowest first, whatever the machine's own order.
    constexpr sip_hash& feed(std::uint64_t word) noexcept;

    [[nodiscard]] constexpr hash_value finish() const noexcept;

private:
    constexpr void                 round() noexcept;
    constexpr void                 compress(std::uint64_t word) noexcept;
    constexpr void                 take(std::uint64_t word, unsigned shift) noexcept;
    static constexpr std::uint64_t read(const char* from, std::size_t bytes) noexcept;

    std::uint64_t v0_, v1_, v2_, v3_;
    std::uint64_t tail_  = 0;  // the bytes fed since the last whole word, lowest first
    unsigned      count_ = 0;  // bytes fed in all; the hash takes it modulo 256
};

// ---------------------------------------------------------------------------------------------

constexpr void sip_hash::round() noexcept
{
    v0_ += v1_, v1_ = std::rotl(v1_, 13) ^ v0_, v0_ = std::rotl(v0_, 32);
    v2_ += v3_, v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_, v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_, v1_ = std::rotl(v1_, 17) ^ v2_, v2_ = std::rotl(v2_, 32);
}

constexpr void sip_hash::compress(std::uint64_t word) noexcept
{
    v3_ ^= word;
    round();
    v0_ ^= word;
}

/// Up to eight bytes as a little-endian number. Never reads past `from + bytes`.
constexpr std::uint64_t sip_hash::read(const char* from, std::size_t bytes) noexcept
{
    if (!std::is_constant_evaluated() && bytes == 8 && std::endian::native == std::endian::little) {
        std::uint64_t word = 0;
        std::memcpy(&word, from, 8);
        return word;
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        word |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
    return word;
}

/// Takes eight bytes that follow `shift` bits of an unfinished word.
constexpr void sip_hash::take(std::uint64_t word, unsigned shift) noexcept
{
    compress(tail_ | word << shift);
    tail_ = word >> 1 >> (63 - shift);  // in two steps, since a shift by 64 is undefined
}

constexpr sip_hash& sip_hash::feed(std::uint64_t word) noexcept
{
    take(word, 8 * (count_ % 8));
    count_ += 8;
    return *this;
}

constexpr sip_hash& sip_hash::feed(std::string_view bytes) noexcept
{
    const unsigned shift = 8 * (count_ % 8);
    count_ += static_cast<unsigned>(bytes.size());
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) take(read(bytes.data(), 8), shift);
    if (bytes.empty()) return *this;

    const auto rest = read(bytes.data(), bytes.size());
    if (shift + 8 * bytes.size() >= 64) take(rest, shift);
    else tail_ |= rest << shift;
    return *this;
}

constexpr hash_value sip_hash::finish() const noexcept
{
    auto last = *this;
    last.compress(tail_ | std::uint64_t{count_} << 56);
    last.v2_ ^= 0xee;
    last.round(), last.round(), last.round();
    const auto low = last.v0_ ^ last.v1_ ^ last.v2_ ^ last.v3_;
    last.v1_ ^= 0xdd;
    last.round(), last.round(), last.round();
    return {low, last.v0_ ^ last.v1_ ^ last.v2_ ^ last.v3_};
}

inline const hash_seed& hash_seed::of_process()
{
    static const hash_seed seed = [] {
        std::random_device entropy;
        const auto         word = [&] { return std::uint64_t{entropy()} << 32 | entropy(); };
        return hash_seed{word(), word()};
    }();
    return seed;
}

}  // namespace weir
