// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limit_options.hpp"

#include "catch.hpp"
#include "weir/http/limit.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using weir::http::limit_options;
using weir::http::limit_policy;
using weir::http::limit_tag;
using weir::http::limit_type;

namespace {

/// What is wrong with them, or nothing.
std::string wrong(limit_options options)
{
    options.name = "site";
    weir::http::counters where({.max_keys = 10, .max_inflight = 8});
    try {
        const weir::http::limit made(options, where);
        return "";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

limit_options rate(std::uint64_t max) { return {.max = max}; }

}  // namespace

TEST_CASE("P03 P04: key and max are required where they are", "[http][limit]")
{
    CHECK(wrong({}) == "weir: limit \"site\": max is required");
    for (const auto tag : {limit_tag::header, limit_tag::cookie, limit_tag::query})
        CHECK(wrong({.tag = tag, .max = 1}) ==
              "weir: limit \"site\": key is required for a header, cookie or query tag");
    for (const auto tag : {limit_tag::ip, limit_tag::ja4, limit_tag::ip_ja4})
        CHECK(wrong({.tag = tag, .key = "unused", .max = 0}).empty());
}

TEST_CASE("P05: an interval under a millisecond is an error, and none to requests in progress",
          "[http][limit]")
{
    for (const auto interval : {weir::duration(0s), weir::duration(500us), weir::duration(-1s)}) {
        CHECK(wrong({.max = 1, .interval = interval}).find("at least 1ms") != std::string::npos);
        CHECK(wrong({.type = limit_type::inflight, .max = 1, .interval = interval}).empty());
    }
    CHECK(wrong({.max = 1, .interval = 1ms}).empty());
}

TEST_CASE("P07: a status is 400 to 599", "[http][limit]")
{
    for (const auto status : {200, 302, 399, 600, -1, 70'000})
        CHECK(wrong({.max = 1, .status = status}) == "weir: limit \"site\": status is " +
                                                         std::to_string(status) +
                                                         ", it must be between 400 and 599");
    CHECK(wrong({.max = 1, .status = 400}).empty());
    CHECK(wrong({.max = 1, .status = 599}).empty());
}

TEST_CASE("numbers that a policy cannot hold are told when the limit is made", "[http][limit]")
{
    const auto most = std::numeric_limits<std::uint64_t>::max();
    CHECK_FALSE(wrong({.max = most, .interval = 60s}).empty());
    CHECK_FALSE(wrong({.max = 1, .interval = 1'000'001ns}).empty());
    CHECK(wrong({.max = most, .interval = 60s, .policy = limit_policy::fixed}).empty());
    for (const auto policy : {limit_policy::gcra, limit_policy::strict}) {
        CHECK(wrong({.max = 0, .policy = policy}).empty());
        CHECK(wrong({.max = 3, .policy = policy, .burst = 3}).empty());
        CHECK(wrong({.max = 3, .policy = policy, .burst = 4}).empty() ==
              (policy == limit_policy::gcra));
        CHECK_FALSE(wrong({.max = 3, .policy = policy, .burst = 0}).empty());
    }
}

TEST_CASE("requests in progress are in the process, exact, and at most a million", "[http][limit]")
{
    const auto of = [](std::uint64_t max) {
        return limit_options{.type = limit_type::inflight, .max = max};
    };
    auto sketched  = of(1);
    sketched.store = "sketch";
    CHECK(wrong(sketched).find("only memory is allowed") != std::string::npos);
    CHECK(wrong(of((1 << 20) + 1)).find("at most 1048576") != std::string::npos);
    auto overridden      = of(1);
    overridden.tag       = limit_tag::ja4;
    overridden.overrides = {{"t13d", std::uint64_t{1} << 40}};
    CHECK_FALSE(wrong(overridden).empty());
}

TEST_CASE("tiers get wider and are of addresses", "[http][limit]")
{
    auto tiers  = rate(1);
    tiers.tiers = {{56, 10}, {48, 20}, {32, 30}};
    CHECK(wrong(tiers).empty());
    tiers.tiers = {{48, 10}, {56, 20}};
    CHECK(wrong(tiers).find("wider than the one before") != std::string::npos);
    tiers.tiers = {{64, 10}};
    CHECK_FALSE(wrong(tiers).empty());
    tiers.tiers = {{56, 1}, {48, 1}, {40, 1}, {32, 1}};
    CHECK_FALSE(wrong(tiers).empty());
    tiers.tiers = {{48, 10}};
    tiers.tag   = limit_tag::ip_ja4;
    CHECK_FALSE(wrong(tiers).empty());
}

TEST_CASE("allow takes ranges, overrides what is counted", "[http][limit]")
{
    auto allowing  = rate(1);
    allowing.allow = {"10.0.0.0/8", "010.0.0.0/8"};
    CHECK(wrong(allowing).find("\"010.0.0.0/8\"") != std::string::npos);
    const auto overriding = [](const char* text) {
        auto options      = rate(1);
        options.overrides = {{text, 5}};
        return wrong(options);
    };
    CHECK(overriding("192.0.2.1").empty());
    CHECK(overriding("2001:db8::1").empty());
    CHECK(overriding("2001:db8::/64").empty());
    CHECK_FALSE(overriding("2001:db8::/48").empty());
    CHECK_FALSE(overriding("192.0.2.0/24").empty());
    CHECK_FALSE(overriding("somebody").empty());
    auto twice      = rate(1);
    twice.overrides = {{"2001:db8::1", 5}, {"2001:db8::2", 6}};
    CHECK(wrong(twice).find("twice") != std::string::npos);
    auto both      = rate(1);
    both.tag       = limit_tag::ip_ja4;
    both.overrides = {{"192.0.2.1", 5}};
    CHECK_FALSE(wrong(both).empty());
}

TEST_CASE("a prefix has 1 to 128 bits", "[http][limit]")
{
    for (const auto prefix : {0, -1, 129})
        CHECK_FALSE(wrong({.max = 1, .ipv6_prefix = prefix}).empty());
}
