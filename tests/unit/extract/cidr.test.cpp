// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/cidr.hpp"

#include "catch.hpp"
#include "reference/table.hpp"

using weir::cidr;

namespace {

std::vector<cidr> ranges(std::initializer_list<const char*> texts)
{
    std::vector<cidr> out;
    for (const auto* text : texts) out.push_back(cidr::parse(text).value());
    return out;
}

const cidr all_v4 = ranges({"0.0.0.0/0"})[0];

}  // namespace

TEST_CASE("a range holds the addresses that the rows say")
{
    for (const auto& row : reference::table("ranges.tsv", 4)) {
        INFO("row " << row[0] << ": " << row[1] << " holds " << row[2]);
        const auto one = weir::address::parse(row[2]).value();
        const bool held =
            row[1] == "private" ? weir::is_private(one) : cidr::parse(row[1]).value().contains(one);
        CHECK(held == (row[3] == "yes"));
    }
}

TEST_CASE("a range that no trusted list may hold does not parse")
{
    for (const auto& row : reference::table("trusted_errors.tsv", 2)) {
        INFO("row " << row[0] << ": " << row[1]);
        CHECK_FALSE(cidr::parse(row[1]).has_value());
    }
}

TEST_CASE("a range prints as its network and length whatever bits were written after it")
{
    CHECK(to_string(ranges({"10.1.2.3/8"})[0]) == "10.0.0.0/8");
    CHECK(to_string(ranges({"::ffff:10.1.2.3/104"})[0]) == "10.0.0.0/8");
    CHECK(to_string(ranges({"2001:DB8::1/32"})[0]) == "2001:db8::/32");
    CHECK(to_string(ranges({"192.0.2.1"})[0]) == "192.0.2.1/32");
}

TEST_CASE("two halves cover the whole and all but one address do not")
{
    CHECK(weir::covers(ranges({"0.0.0.0/1", "128.0.0.0/1"}), all_v4));
    CHECK(weir::covers(ranges({"128.0.0.0/2", "0.0.0.0/1", "192.0.0.0/2", "10.0.0.0/8"}), all_v4));
    CHECK_FALSE(weir::covers(ranges({"0.0.0.0/1", "128.0.0.0/2"}), all_v4));
    CHECK_FALSE(weir::covers({}, all_v4));
    CHECK_FALSE(weir::covers(ranges({"::/0"}), all_v4));
    CHECK(weir::covers(ranges({"::/0"}), ranges({"2000::/3"})[0]));
    CHECK_FALSE(weir::covers(ranges({"2000::/4"}), ranges({"2000::/3"})[0]));

    std::vector<cidr> nearly;
    for (int length = 1; length <= 32; ++length) {
        const auto bit  = std::uint32_t{1} << (32 - length);
        const auto byte = [&](int shift) { return static_cast<std::uint8_t>(bit >> shift & 0xff); };
        nearly.emplace_back(weir::address::from_v4({byte(24), byte(16), byte(8), byte(0)}), length);
    }
    CHECK_FALSE(weir::covers(nearly, all_v4));  // 0.0.0.0 is missing
    nearly.push_back(ranges({"0.0.0.0"})[0]);
    CHECK(weir::covers(nearly, all_v4));
}
