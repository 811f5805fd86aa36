// SPDX-License-Identifier: BSL-1.0

#include "weir/key.hpp"

#include "catch.hpp"

#include <chrono>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using namespace std::string_view_literals;

namespace {

/// Writes down what it is fed.
struct transcript {
    std::string bytes = {};

    transcript& feed(std::string_view more)
    {
        bytes += more;
        return *this;
    }
    transcript& feed(std::uint64_t word)
    {
        for (int i = 0; i < 8; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
        return *this;
    }
};

constexpr weir::hash_seed seed{.low = 1, .high = 2};

weir::key key_of(const weir::subject& who) { return weir::digest(seed, 1, "ip", 60s)(who); }

}  // namespace

TEST_CASE("the digest layout is version, policy, name, window and then each part with its length",
          "[key]")
{
    transcript hash;
    weir::feed_limit(hash, 3, "ip", weir::duration(0x0102));
    weir::feed_subject(hash, weir::parts("ab"sv, ""sv));
    CHECK(hash.bytes == "\x01\x03\x02\x00ip\x02\x01\x00\x00\x00\x00\x00\x00"
                        "\x02\x00\x00\x00\x00\x00\x00\x00"
                        "ab"
                        "\x00\x00\x00\x00\x00\x00\x00\x00"sv);
}

TEST_CASE("O10: parts are never run together", "[key]")
{
    CHECK(key_of(weir::parts("10.0.0.1"sv, "1/x"sv)) != key_of(weir::parts("10.0.0.11"sv, "/x"sv)));
    CHECK(key_of(weir::parts("a|b"sv, "c"sv)) != key_of(weir::parts("a"sv, "b|c"sv)));
    CHECK(key_of(weir::parts("a"sv, ""sv)) != key_of(weir::parts(""sv, "a"sv)));
    CHECK(key_of(weir::parts("a"sv, ""sv)) != key_of("a"sv));
    CHECK(key_of(weir::parts("a"sv)) == key_of("a"sv));
}

TEST_CASE("any byte of a subject counts: NUL, bytes over 0x7f, and the last of a mebibyte", "[key]")
{
    std::string large(std::size_t{1} << 20, 'a');
    const auto  whole = key_of(large);
    large.back()      = 'b';
    CHECK(key_of(large) != whole);
    CHECK(key_of("a\0b"sv) != key_of("a"sv));
    CHECK(key_of("\xff\xfe"sv) != key_of("\xff"sv));
    CHECK(key_of(""sv) == key_of(std::string()));
}

TEST_CASE("limiters that differ in name, policy, window or seed have different keys", "[key]")
{
    std::set<weir::key> keys;
    for (const auto& one : {weir::digest(seed, 1, "ip", 60s), weir::digest({}, 1, "ip", 60s),
                            weir::digest(seed, 2, "ip", 60s), weir::digest(seed, 1, "ip2", 60s),
                            weir::digest(seed, 1, "ip", 61s), weir::digest(seed, 1, "", 60s)})
        keys.insert(one("subject"sv));
    CHECK(keys.size() == 6);
}

TEST_CASE("a name of 65535 bytes is a name and a longer one is refused", "[key]")
{
    CHECK_NOTHROW(weir::digest(seed, 1, std::string(65'535, 'n'), 1s));
    CHECK_THROWS_AS(weir::digest(seed, 1, std::string(65'536, 'n'), 1s), std::invalid_argument);
}

TEST_CASE("a type that shows its bytes is a part like text", "[key]")
{
    struct address {
        std::string_view bytes() const { return "\x0a\x00\x00\x01"sv; }
    };
    CHECK(key_of(address()) == key_of("\x0a\x00\x00\x01"sv));
    CHECK(key_of(weir::parts(address(), "x"sv)) ==
          key_of(weir::parts("\x0a\x00\x00\x01"sv, "x"sv)));
}

TEST_CASE("keys have one order, the high half first", "[key]")
{
    CHECK(weir::key{0, 9} < weir::key{1, 0});
    CHECK(weir::key{1, 0} < weir::key{1, 1});
    CHECK(weir::key{1, 1} == weir::key{1, 1});
}
