// SPDX-License-Identifier: BSL-1.0

#include "weir/sip_hash.hpp"

#include "catch.hpp"
#include "reference/table.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace {

constexpr weir::hash_seed counting_seed{.low = 0x0706050403020100, .high = 0x0f0e0d0c0b0a0908};

std::string counting_bytes(std::size_t count)
{
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i);
    return bytes;
}

std::string hex(const weir::hash_value& value)
{
    constexpr char digits[] = "0123456789abcdef";
    std::string    text;
    for (const auto word : {value.low, value.high})
        for (unsigned shift = 0; shift < 64; shift += 8) {
            text += digits[word >> shift >> 4 & 0xf];
            text += digits[word >> shift & 0xf];
        }
    return text;
}

}  // namespace

TEST_CASE("SipHash-1-3-128 gives the published digests of 0 to 63 bytes", "[sip_hash]")
{
    const auto rows = reference::table("sip_hash.txt", 2);
    REQUIRE(rows.size() == 64);
    for (const auto& row : rows) {
        const auto bytes = counting_bytes(std::stoul(row[0]));
        CHECK(hex(weir::sip_hash(counting_seed).feed(bytes).finish()) == row[1]);
    }
}

TEST_CASE("bytes fed in any two or three pieces hash as when fed at once", "[sip_hash]")
{
    const auto             bytes = counting_bytes(40);
    const auto             whole = weir::sip_hash(counting_seed).feed(bytes).finish();
    const std::string_view all   = bytes;
    for (std::size_t first = 0; first <= all.size(); ++first)
        for (std::size_t second = first; second <= all.size(); ++second) {
            weir::sip_hash hash(counting_seed);
            hash.feed(all.substr(0, first)).feed(all.substr(first, second - first));
            REQUIRE(hash.feed(all.substr(second)).finish() == whole);
        }
}

TEST_CASE("a number is fed as its eight bytes with the lowest first, at any offset", "[sip_hash]")
{
    const std::string_view number("\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    for (std::size_t before = 0; before < 17; ++before) {
        weir::sip_hash hash(counting_seed);
        hash.feed(counting_bytes(before));
        auto as_bytes = hash;
        REQUIRE(hash.feed(std::uint64_t{0x0102030405060708}).finish() ==
                as_bytes.feed(number).finish());
    }
}

TEST_CASE("a length past 255 bytes still changes the hash", "[sip_hash]")
{
    std::set<std::string> seen;
    for (std::size_t length = 0; length <= 600; ++length)
        seen.insert(hex(weir::sip_hash(counting_seed).feed(std::string(length, '\0')).finish()));
    CHECK(seen.size() == 601);
}

TEST_CASE("finishing a copy leaves the original to be fed further", "[sip_hash]")
{
    weir::sip_hash hash(counting_seed);
    hash.feed("abc");
    const auto once = hash.finish();
    CHECK(hash.finish() == once);
    CHECK(hash.feed("d").finish() == weir::sip_hash(counting_seed).feed("abcd").finish());
}

TEST_CASE("each half of the seed changes both halves of the hash", "[sip_hash]")
{
    const auto with = [](std::uint64_t low, std::uint64_t high) {
        return weir::sip_hash({low, high}).feed("subject").finish();
    };
    const auto base = with(0, 0);
    for (unsigned bit = 0; bit < 64; ++bit)
        for (const auto& other :
             {with(std::uint64_t{1} << bit, 0), with(0, std::uint64_t{1} << bit)}) {
            CHECK(other.low != base.low);
            CHECK(other.high != base.high);
        }
}

TEST_CASE("hashing at compile time gives what it gives at run time", "[sip_hash]")
{
    constexpr auto compiled = weir::sip_hash(counting_seed).feed("0123456789").finish();
    std::string    bytes    = "0123456789";
    CHECK(weir::sip_hash(counting_seed).feed(bytes).finish() == compiled);
}

TEST_CASE("the seed of a process stays the same and is not zero", "[sip_hash]")
{
    const auto seed = weir::hash_seed::of_process();
    CHECK(seed == weir::hash_seed::of_process());
    CHECK(!(seed == weir::hash_seed{}));
}
