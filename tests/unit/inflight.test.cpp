// SPDX-License-Identifier: BSL-1.0

#include "weir/inflight.hpp"

#include "catch.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

static_assert(!std::copyable<weir::permit> && std::movable<weir::permit>);
static_assert(!std::movable<weir::inflight>, "permits point to it");
static_assert(std::is_nothrow_move_constructible_v<weir::permit>);
static_assert(std::is_nothrow_move_assignable_v<weir::permit>);

constexpr weir::inflight_options one{.per_key = 1, .in_total = 8};

}  // namespace

TEST_CASE("O46: of 10,000 clients that connect and drop one after the other each is admitted",
          "[inflight]")
{
    weir::inflight sockets("sockets", one);
    std::size_t    admitted = 0;
    for (int i = 0; i < 10'000; ++i) admitted += bool(sockets.enter("client"));
    CHECK(admitted == 10'000);
    CHECK(sockets.held() == 0);
    CHECK(sockets.held("client") == 0);
}

TEST_CASE("O46: a connection that an upgrade hands over counts 1 and then 0, never less",
          "[inflight]")
{
    weir::inflight sockets("sockets", one);
    {
        auto request = sockets.enter("client");
        CHECK(sockets.held("client") == 1);
        weir::permit upgraded(std::move(request));
        CHECK(sockets.held("client") == 1);
        request.release();  // the request ends while the socket lives on
        CHECK(sockets.held("client") == 1);
        CHECK_FALSE(sockets.enter("client"));
        upgraded.release();
        CHECK(sockets.held("client") == 0);
        upgraded.release();
    }
    CHECK(sockets.held("client") == 0);
    CHECK(sockets.held() == 0);

    const auto first = sockets.enter("client");
    CHECK(first);
    CHECK_FALSE(sockets.enter("client"));
}

TEST_CASE("B24: the place of a connection that closed is free again in every location of its zone",
          "[inflight]")
{
    weir::inflight zone("zone", one), other_zone("other", one);
    auto           in_first_location = zone.enter("192.0.2.1");
    CHECK(in_first_location);
    CHECK_FALSE(zone.enter("192.0.2.1"));
    CHECK(zone.enter("192.0.2.2"));
    CHECK(other_zone.enter("192.0.2.1"));

    in_first_location.release();
    const auto in_second_location = zone.enter("192.0.2.1");
    CHECK(in_second_location);
    CHECK_FALSE(zone.enter("192.0.2.1"));
}

TEST_CASE("B24: what the limit of 5 admitted and the limit of 1 refused holds no place in either",
          "[inflight]")
{
    weir::inflight wide("wide", {.per_key = 5}), narrow("narrow", {.per_key = 1});
    const auto     in_wide = wide.enter("a"), in_narrow = narrow.enter("a");
    REQUIRE((in_wide && in_narrow));
    {
        const auto again = wide.enter("a"), refused = narrow.enter("a");
        CHECK(again);
        CHECK_FALSE(refused);
        CHECK(wide.held("a") == 2);
    }
    CHECK(wide.held("a") == 1);
    CHECK(narrow.held("a") == 1);
}

TEST_CASE("P28: the place is free after a request that returns, throws, is refused or is dropped",
          "[inflight]")
{
    weir::inflight uploads("uploads", one);
    const auto     serve = [&](bool fails) {
        const auto permit = uploads.enter("client");
        if (!permit) return false;
        if (fails) throw std::runtime_error("upload");
        return true;
    };
    CHECK(serve(false));
    CHECK(uploads.held() == 0);
    CHECK_THROWS_AS(serve(true), std::runtime_error);
    CHECK(uploads.held() == 0);
    {
        const auto busy = uploads.enter("client");
        CHECK_FALSE(serve(false));
        CHECK(uploads.held() == 1);
    }
    CHECK(uploads.held() == 0);
    std::optional<weir::permit> connection(uploads.enter("client"));
    CHECK(uploads.held() == 1);
    std::thread([&] { connection.reset(); }).join();  // another thread may be the one to drop it
    CHECK(uploads.held() == 0);
}

TEST_CASE("P29: a limit of 0 refuses everything, a limit of 1 passes one at a time", "[inflight]")
{
    weir::inflight closed_to_keys("closed", {.per_key = 0});
    weir::inflight closed_to_all("closed", {.in_total = 0});
    CHECK_FALSE(closed_to_keys.enter("a"));
    CHECK_FALSE(closed_to_all.enter("a"));
    CHECK(closed_to_keys.enter("a").decision().limit == 0);
    CHECK(closed_to_all.enter("a").decision().limit == 0);
    CHECK(closed_to_all.enter("a").bound() == weir::inflight_bound::in_total);

    weir::inflight single("single", one);
    for (int i = 0; i < 3; ++i) {
        const auto permit = single.enter("a");
        CHECK(permit);
        CHECK_FALSE(single.enter("a"));
    }
}

TEST_CASE("P30: a request under two limits gives both places back when it ends", "[inflight]")
{
    weir::inflight per_client("client", {.per_key = 1}), per_page("page", {.per_key = 1});
    {
        const auto client = per_client.enter("a"), page = per_page.enter("/");
        CHECK((client && page));
        const auto second = per_client.enter("a");
        CHECK_FALSE(second);
        CHECK(second.decision().limiter == "client");
        CHECK(per_page.held("/") == 1);
    }
    CHECK(per_client.held() == 0);
    CHECK(per_page.held() == 0);
}

TEST_CASE("P31: a thousand refused requests hold no place and are told no wait", "[inflight]")
{
    weir::inflight            uploads("uploads", one);
    const auto                inside = uploads.enter("client");
    std::vector<weir::permit> refused;
    for (int i = 0; i < 1000; ++i) refused.push_back(uploads.enter("client"));
    CHECK(uploads.held("client") == 1);
    CHECK(uploads.held() == 1);
    for (const auto& permit : refused) {
        REQUIRE_FALSE(permit);
        REQUIRE(permit.decision().retry_after == std::nullopt);
    }
}

TEST_CASE("P32: of the places of one key each is given back by its own permit", "[inflight]")
{
    weir::inflight uploads("uploads", {.per_key = 3});
    auto           first  = uploads.enter("client");
    auto           second = uploads.enter("client"), third = uploads.enter("client");
    CHECK(uploads.held("client") == 3);
    first.release();
    CHECK(uploads.held("client") == 2);
    second.release(), third.release();
    CHECK(uploads.held("client") == 0);
    const auto next = uploads.enter("client");
    CHECK(uploads.held("client") == 1);
}

TEST_CASE("a permit that is moved, moved onto, or moved onto itself gives each place back once",
          "[inflight]")
{
    weir::inflight uploads("uploads", {.per_key = 2});
    auto           a = uploads.enter("a"), b = uploads.enter("b");

    SECTION("moved from, it holds nothing")
    {
        weir::permit taken(std::move(a));
        CHECK_FALSE(a);
        CHECK(taken);
        a.release();
        CHECK(uploads.held("a") == 1);
    }
    SECTION("moved onto, it gives its own place back and holds the other's")
    {
        a = std::move(b);
        CHECK(uploads.held("a") == 0);
        CHECK(uploads.held("b") == 1);
        CHECK((a && !b));
        a.release();
        CHECK(uploads.held("b") == 0);
    }
    SECTION("a refusal moved onto it leaves nothing behind")
    {
        const auto more = uploads.enter("a");
        a               = uploads.enter("a");
        CHECK_FALSE(a);
        CHECK(uploads.held("a") == 1);
    }
    SECTION("moved onto itself, it keeps its place")
    {
        auto& self = a;
        a          = std::move(self);
        CHECK(a);
        CHECK(uploads.held("a") == 1);
    }
    SECTION("swapped, both stay")
    {
        std::swap(a, b);
        CHECK((a && b));
        a.release();
        CHECK(uploads.held("b") == 0);
        CHECK(uploads.held("a") == 1);
    }
    SECTION("moved about by a growing vector, all stay")
    {
        std::vector<weir::permit> many;
        for (int i = 0; i < 100; ++i) many.push_back(uploads.enter(std::to_string(i)));
        CHECK(uploads.held() == 102);
        many.erase(many.begin() + 10, many.begin() + 20);
        CHECK(uploads.held() == 92);
        many.clear();
        CHECK(uploads.held() == 2);
    }
    a.release(), b.release();
    CHECK(uploads.held() == 0);
}

TEST_CASE("after a million requests that throw no place is held", "[inflight]")
{
    weir::inflight uploads("uploads", {.per_key = 1, .in_total = 2});
    int            caught = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        try {
            const auto permit = uploads.enter("client");
            if (permit) throw i;
        } catch (int) {
            ++caught;
        }
    }
    CHECK(caught == 1'000'000);
    CHECK(uploads.held() == 0);
}

TEST_CASE("the total refuses every key, whoever holds the places, and a free place goes to any key",
          "[inflight]")
{
    weir::inflight            uploads("uploads", {.per_key = 2, .in_total = 64});
    std::vector<weir::permit> inside;
    for (int i = 0; i < 64; ++i) inside.push_back(uploads.enter(std::to_string(i)));
    CHECK(uploads.held() == 64);

    const auto refused = uploads.enter("another");
    CHECK_FALSE(refused);
    CHECK(refused.decision().limit == 64);
    CHECK(refused.bound() == weir::inflight_bound::in_total);
    CHECK_FALSE(uploads.enter("3"));

    inside.erase(inside.begin() + 40);
    CHECK(uploads.enter("another"));
    CHECK(uploads.enter("3"));
}

TEST_CASE("a decision tells the limit that leaves less room, and no time", "[inflight]")
{
    weir::inflight uploads("uploads", {.per_key = 2, .in_total = 4});

    const auto first = uploads.enter("a");
    const weir::decision admitted{
        .verdict = weir::verdict::admitted, .limiter = "uploads", .limit = 2, .left = 1};
    CHECK(first.decision() == admitted);
    const auto second = uploads.enter("a");
    CHECK(second.decision().left == 0);

    const auto third = uploads.enter("a");
    const weir::decision refused{.limiter = "uploads", .limit = 2, .retry_after = std::nullopt};
    CHECK(third.decision() == refused);
    CHECK(third.bound() == weir::inflight_bound::per_key);

    const auto fourth = uploads.enter("b");  // one place left to b, and one in total
    CHECK(fourth.bound() == weir::inflight_bound::per_key);
    CHECK(fourth.decision().left == 1);
    const auto fifth = uploads.enter("c");
    CHECK(fifth.bound() == weir::inflight_bound::in_total);
    CHECK(fifth.decision().limit == 4);
    CHECK(fifth.decision().left == 0);
}

TEST_CASE("without a limit per key only the total counts", "[inflight]")
{
    weir::inflight            uploads("uploads", {.in_total = 5});
    std::vector<weir::permit> inside;
    for (int i = 0; i < 5; ++i) inside.push_back(uploads.enter("a"));
    CHECK(inside.front().decision().limit == 5);
    CHECK(inside.front().decision().left == 4);
    CHECK(inside.front().bound() == weir::inflight_bound::in_total);
    CHECK(uploads.held("a") == 5);
    CHECK_FALSE(uploads.enter("a"));
}

TEST_CASE("a lowered limit leaves who is inside and admits nobody until it is met", "[inflight]")
{
    weir::inflight uploads("uploads", {.per_key = 3, .in_total = 8});
    auto           first = uploads.enter("a"), second = uploads.enter("a");

    CHECK(uploads.set_limits({.per_key = 1, .in_total = 1}));
    CHECK(uploads.limits() == weir::inflight_options{.per_key = 1, .in_total = 1});
    CHECK(uploads.held("a") == 2);
    CHECK(uploads.enter("a").decision().left == 0);
    CHECK_FALSE(uploads.enter("b"));
    first.release();
    CHECK_FALSE(uploads.enter("a"));
    second.release();
    CHECK(uploads.enter("a"));
}

TEST_CASE("a total above the one at construction is not set, and changes nothing", "[inflight]")
{
    weir::inflight uploads("uploads", {.per_key = 1, .in_total = 8});
    CHECK_FALSE(uploads.set_limits({.per_key = 5, .in_total = 9}));
    CHECK(uploads.limits() == weir::inflight_options{.per_key = 1, .in_total = 8});
    CHECK(uploads.set_limits({.per_key = 5, .in_total = 2}));
    CHECK(uploads.set_limits({.per_key = 5, .in_total = 8}));

    weir::inflight closed("closed", {.in_total = 0});
    CHECK_FALSE(closed.set_limits({.in_total = 1}));
}

TEST_CASE("the bytes stated are 88 for each place in total and a fixed part", "[inflight]")
{
    const auto bytes = [](std::uint32_t places) {
        return weir::inflight("bytes", {.in_total = places}).bytes();
    };
    CHECK(bytes(1000) - bytes(1) == 999 * 88);
    CHECK(bytes(1) < 600);
}

TEST_CASE("the same subject holds places of its own in inflights of other names", "[inflight]")
{
    weir::inflight a("a", one), b("b", one);
    CHECK(a.digest("client") == weir::inflight("a", {.in_total = 3}).digest("client"));
    CHECK(a.digest("client") != b.digest("client"));
    CHECK(a.digest("client") == weir::digest(weir::hash_seed::of_process(), 64, "a", {})("client"));

    const auto by_key = a.enter(a.digest("client"));
    CHECK(a.held("client") == 1);
    CHECK_FALSE(a.enter("client"));
    CHECK(b.enter("client"));
}

TEST_CASE("a name that no digest layout can hold is refused at construction", "[inflight]")
{
    CHECK_THROWS_AS(weir::inflight(std::string(65'536, 'x')), std::invalid_argument);
}

// Full tables of few places: most keys share their bucket with others, and come and go.
TEST_CASE("whatever comes and goes, verdicts and gauges are those of a plain count", "[inflight]")
{
    std::mt19937 draw(20240917);
    const auto   below = [&](std::size_t n) { return static_cast<std::uint32_t>(draw() % n); };
    for (int round = 0; round < 200; ++round) {
        const weir::inflight_options limits{.per_key = 1 + below(3), .in_total = 1 + below(20)};
        weir::inflight               uploads("uploads", limits);

        std::map<weir::key, std::uint32_t>              count;
        std::vector<std::pair<weir::key, weir::permit>> inside;
        for (int step = 0; step < 300; ++step) {
            if (!inside.empty() && below(5) < 2) {
                const auto leaving = inside.begin() + below(inside.size());
                --count[leaving->first];
                inside.erase(leaving);
                continue;
            }
            // Keys of one bucket, or of many.
            const weir::key who{below(2) == 0 ? 7 : std::uint64_t{below(30)} << 58, below(30)};
            auto&           mine = count[who];
            auto            made = uploads.enter(who);
            REQUIRE(bool(made) == (mine < limits.per_key && inside.size() < limits.in_total));
            if (made) ++mine, inside.emplace_back(who, std::move(made));
            REQUIRE(uploads.held(who) == mine);
            REQUIRE(uploads.held() == inside.size());
        }
    }
}
