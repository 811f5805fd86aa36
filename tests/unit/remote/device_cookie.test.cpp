// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/device_cookie.hpp"

#include <chrono>
#include <string>

#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::remote::device_cookie;

namespace {

constexpr auto start = weir::testing::manual_clock::new_year;

const std::string secret = "a secret of thirty-two bytes....";

}  // namespace

TEST_CASE("a device is known by its cookie until the lifetime is over", "[device_cookie]")
{
    const device_cookie cookies({.secret = secret, .lifetime = 24h});
    const auto          value = cookies.issue("bob", {}, start);
    const auto          known = cookies.known("bob", value, start + 24h - 1s);
    CHECK(known.size() == 32);
    CHECK(cookies.known("bob", value, start) == known);
    CHECK(cookies.known("bob", value, start + 24h).empty());
}

TEST_CASE("a renewed cookie names the same device, and each new one another", "[device_cookie]")
{
    const device_cookie cookies({.secret = secret});
    const auto          first = cookies.known("bob", cookies.issue("bob", {}, start), start);
    const auto          again = cookies.issue("bob", first, start + 24h);
    CHECK(cookies.known("bob", again, start + 24h) == first);
    CHECK(cookies.known("bob", cookies.issue("bob", {}, start), start) != first);
    CHECK(cookies.known("bob", cookies.issue("bob", "a.b;c", start), start).size() == 32);
}

TEST_CASE("a cookie of another user, secret or purpose knows nobody", "[device_cookie]")
{
    const device_cookie cookies({.secret = secret});
    const device_cookie others({.secret = secret + "."});
    const auto          value = cookies.issue("bob", {}, start);
    CHECK(cookies.known("alice", value, start).empty());
    CHECK(others.known("bob", value, start).empty());

    // Signed with the secret itself, as some other purpose may do.
    const auto head = value.substr(0, value.rfind('.'));
    const auto same = weir::remote::hex(weir::remote::hash(secret, head));
    CHECK(cookies.known("bob", head + "." + same, start).empty());
}

TEST_CASE("no cookie with one character changed, missing or added is known", "[device_cookie]")
{
    const device_cookie cookies({.secret = secret});
    const auto          value = cookies.issue("bob", {}, start);
    for (std::size_t n = 0; n < value.size(); ++n) {
        auto changed = value;
        changed[n]   = changed[n] == '1' ? '2' : '1';
        REQUIRE(cookies.known("bob", changed, start).empty());
        REQUIRE(cookies.known("bob", value.substr(0, n), start).empty());
        REQUIRE(cookies.known("bob", value.substr(n + 1), start).empty());
    }
    CHECK(cookies.known("bob", value + "0", start).empty());
    CHECK(cookies.known("bob", "", start).empty());
    CHECK(cookies.known("bob", "....", start).empty());
    CHECK(cookies.known("bob", std::string(100'000, '.'), start).empty());
    CHECK_FALSE(cookies.known("bob", value, start).empty());
}

TEST_CASE("a secret of less than 16 bytes and a lifetime of nothing are thrown", "[device_cookie]")
{
    CHECK_THROWS_AS(device_cookie({.secret = "fifteen bytes.."}), std::invalid_argument);
    CHECK_THROWS_AS(device_cookie({.secret = secret, .lifetime = 0s}), std::invalid_argument);
}
