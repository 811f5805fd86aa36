// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/address.hpp"

#include "catch.hpp"
#include "reference/table.hpp"

using weir::address;

static_assert(address::from_v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 1, 2, 3, 4}) ==
              address::from_v4({1, 2, 3, 4}));
static_assert(address::parse("2001:db8::1")->masked(32) == address::parse("2001:db8::"));
static_assert(address::from_v4({255, 255, 255, 255}).masked(9) == address::from_v4({255, 128}));
static_assert(address{} == address::parse("::") && address{}.is_unspecified());

namespace {

std::string printed(const std::optional<address>& found) { return found ? to_string(*found) : "-"; }

}  // namespace

TEST_CASE("a text is an address or not and prints in one form as the rows say")
{
    for (const auto& row : reference::table("address_text.tsv", 3)) {
        INFO("row " << row[0] << ": " << row[1]);
        CHECK(printed(address::parse(row[1])) == row[2]);
    }
}

TEST_CASE("an element with an optional port names the address that the rows say")
{
    for (const auto& row : reference::table("endpoint_text.tsv", 3)) {
        INFO("row " << row[0] << ": " << row[1]);
        CHECK(printed(address::parse_endpoint(row[1])) == row[2]);
    }
}

TEST_CASE("every address that parses also parses as an element without port")
{
    for (const auto& row : reference::table("address_text.tsv", 3)) {
        INFO("row " << row[0] << ": " << row[1]);
        if (const auto found = address::parse(row[1]))
            CHECK(address::parse_endpoint(row[1]) == found);
        CHECK(row[2] != "");
    }
}

TEST_CASE("the printed form of an address parses to the same address")
{
    for (const auto& row : reference::table("address_text.tsv", 3)) {
        if (row[2] == "-") continue;
        INFO("row " << row[0]);
        CHECK(address::parse(row[2]) == address::parse(row[1]));
    }
}

TEST_CASE("bytes stand in network order with IPv4 in the first four")
{
    const auto v4 = address::from_v4({203, 0, 113, 7});
    CHECK(v4.bytes() == std::array<std::uint8_t, 16>{203, 0, 113, 7});
    const std::array<std::uint8_t, 16> raw{0x20, 1, 0x0d, 0xb8, 1, 2,  3,  4,
                                           5,    6, 7,    8,    9, 10, 11, 12};
    CHECK(address::from_v6(raw).bytes() == raw);
}

TEST_CASE("a mask keeps exactly the bits of its length")
{
    const auto ones = address::parse("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe");
    REQUIRE(ones.has_value());
    CHECK(to_string(ones->masked(0)) == "::");
    CHECK(to_string(ones->masked(1)) == "8000::");
    CHECK(to_string(ones->masked(64)) == "ffff:ffff:ffff:ffff::");
    CHECK(to_string(ones->masked(65)) == "ffff:ffff:ffff:ffff:8000::");
    CHECK(ones->masked(128) == *ones);
    CHECK(ones->masked(-1) == ones->masked(0));
    CHECK(ones->masked(1000) == *ones);
}

TEST_CASE("IPv4 sorts before IPv6 and each by its number")
{
    CHECK(address::from_v4({255, 255, 255, 255}) < *address::parse("::1"));
    CHECK(address::from_v4({1, 2, 3, 4}) < address::from_v4({1, 2, 4}));
    CHECK(*address::parse("::1") < *address::parse("1::"));
}
