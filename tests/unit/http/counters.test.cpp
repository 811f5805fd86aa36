// SPDX-License-Identifier: BSL-1.0

#include "weir/http/counters.hpp"

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"
#include "weir/testing/scripted_store.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using reference::caller;
using reference::passed;
using reference::t;
using weir::http::counters;
using weir::http::limit;
using weir::http::limit_options;
using weir::http::limit_policy;
using weir::http::limit_type;

namespace {

limit_options fixed(std::uint64_t max)
{
    return {.name = "site", .max = max, .interval = 60s, .policy = limit_policy::fixed};
}

/// The share, in percent, of requests refused that no exact counter refuses: `keys` clients send
/// `each` in one window.
double wrongly_refused(const char* store, int keys, int each, std::uint64_t max)
{
    counters where({.max_keys = 20'000});
    auto     options = fixed(max);
    options.store    = store;
    const limit by_ip(options, where);
    int         refused = 0;
    for (int round = 0; round < each; ++round)
        for (int i = 0; i < keys; ++i) {
            const auto text = "10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256);
            refused += 1 - passed(by_ip, caller(text), 1, t(0));
        }
    return 100.0 * refused / (keys * each);
}

}  // namespace

TEST_CASE("O40: a thousand reloads fill no bucket and keep no counters", "[http][counters]")
{
    counters     where({.max_keys = 100});
    const caller who;
    auto         live = std::make_unique<limit>(fixed(10), where);
    CHECK(passed(*live, who, 10, t(0)) == 10);
    for (int i = 0; i < 1'000; ++i) {
        auto next = std::make_unique<limit>(fixed(10), where);
        live      = std::move(next);
        CHECK(passed(*live, who, 1, t(0)) == 0);
    }
    CHECK(where.size() == 1);
}

TEST_CASE("O40: counts of limits that are gone are forgotten, however many names there were",
          "[http][counters]")
{
    counters where({.max_keys = 100, .max_inflight = 8});
    for (int i = 0; i < 1'000; ++i) {
        auto options = fixed(10);
        options.name = "site" + std::to_string(i);
        CHECK(passed(limit(options, where), caller(), 20, t(0)) == 10);
        options.type = limit_type::inflight;
        CHECK(passed(limit(options, where), caller(), 20, t(0)) == 20);
    }
    CHECK(where.size() == 1);
    CHECK(passed(limit(fixed(10), where), caller(), 10, t(0)) == 10);
    CHECK(passed(limit(fixed(10), where), caller(), 10, t(0)) == 10);
}

TEST_CASE("O40: a larger max of requests in progress applies at once, also past the room",
          "[http][counters]")
{
    counters            where({.max_inflight = 3});
    limit_options       options{.name = "slots", .type = limit_type::inflight, .max = 1};
    const caller        who;
    weir::http::passage through;
    auto                live = std::make_unique<limit>(options, where);
    CHECK_FALSE(live->admit(who.visit(), through, t(0)));
    options.max = 2;
    live        = std::make_unique<limit>(options, where);
    CHECK_FALSE(live->admit(who.visit(), through, t(0)));
    CHECK(live->admit(who.visit(), through, t(0)));
    options.max = 5;
    live        = std::make_unique<limit>(options, where);
    for (int i = 0; i < 5; ++i) CHECK_FALSE(live->admit(who.visit(), through, t(0)));
    CHECK(live->admit(who.visit(), through, t(0)));
}

TEST_CASE("O40: a reload with limit 20 gives ten more, not twenty", "[http][counters]")
{
    const auto   policy = GENERATE(limit_policy::fixed, limit_policy::sliding);
    counters     where({.max_keys = 100});
    const caller who;
    auto         options = fixed(10);
    options.policy       = policy;
    auto before          = std::make_unique<limit>(options, where);
    CHECK(passed(*before, who, 15, t(0)) == 10);
    options.max      = 20;
    const auto after = std::make_unique<limit>(options, where);
    before.reset();
    CHECK(passed(*after, who, 30, t(0)) == 10);
}

TEST_CASE("a lower max counts what is in progress, and a passage outlives its limit",
          "[http][counters]")
{
    counters      where({.max_keys = 100, .max_inflight = 8});
    limit_options options{.name = "slots", .type = limit_type::inflight, .max = 3};
    const caller  who;
    auto          before = std::make_unique<limit>(options, where);
    {
        weir::http::passage first, second;
        CHECK_FALSE(before->admit(who.visit(), first, t(0)));
        CHECK_FALSE(before->admit(who.visit(), second, t(0)));
        options.max      = 2;
        const auto after = std::make_unique<limit>(options, where);
        before.reset();
        CHECK(passed(*after, who, 1, t(0)) == 0);
        second.leave();
        CHECK(passed(*after, who, 1, t(0)) == 1);
    }
}

TEST_CASE("a configuration that is made and thrown away changes no live limit", "[http][counters]")
{
    counters      where({.max_inflight = 8});
    limit_options options{.name = "slots", .type = limit_type::inflight, .max = 1};
    const limit   live(options, where);
    options.max = 5;
    const limit         never_used(options, where);
    const caller        who;
    weir::http::passage first;
    CHECK_FALSE(live.admit(who.visit(), first, t(0)));
    CHECK(passed(live, who, 1, t(0)) == 0);
}

TEST_CASE("more in progress than there is room for are made room for by a larger max",
          "[http][counters]")
{
    counters            where({.max_inflight = 2});
    const limit         large({.name = "slots", .type = limit_type::inflight, .max = 5}, where);
    const caller        who;
    weir::http::passage through;
    for (int i = 0; i < 5; ++i) CHECK_FALSE(large.admit(who.visit(), through, t(0)));
    CHECK(reference::ask(large, who, t(0)).value().body == "Plugin limit, exceed limit 6/5");

    const limit         small({.name = "few", .type = limit_type::inflight, .max = 1}, where);
    weir::http::passage a, b;
    CHECK_FALSE(small.admit(caller("192.0.2.1").visit(), a, t(0)));
    CHECK_FALSE(small.admit(caller("192.0.2.2").visit(), b, t(0)));
    CHECK(reference::ask(small, caller("192.0.2.3"), t(0)).value().body ==
          "Plugin limit, exceed limit 3/2");
}

TEST_CASE("another interval, policy, store or name is another count", "[http][counters]")
{
    counters     where({.max_keys = 100});
    const caller who;
    const limit  first(fixed(1), where);
    CHECK(passed(first, who, 2, t(0)) == 1);
    auto other     = fixed(1);
    other.interval = 61s;
    CHECK(passed(limit(other, where), who, 2, t(0)) == 1);
    other        = fixed(1);
    other.policy = limit_policy::sliding;
    CHECK(passed(limit(other, where), who, 2, t(0)) == 1);
    other       = fixed(1);
    other.store = "sketch";
    CHECK(passed(limit(other, where), who, 2, t(0)) == 1);
    other      = fixed(1);
    other.name = "site2";
    CHECK(passed(limit(other, where), who, 2, t(0)) == 1);
    CHECK(passed(limit(fixed(1), where), who, 2, t(0)) == 0);
}

TEST_CASE("P65: the counters of two processes are two", "[http][counters]")
{
    counters     one({.max_keys = 100}), two({.max_keys = 100});
    const caller who;
    CHECK(passed(limit(fixed(5), one), who, 9, t(0)) == 5);
    CHECK(passed(limit(fixed(5), two), who, 9, t(0)) == 5);
}

TEST_CASE("P62 P63 P64: the table refuses nobody wrongly where the sketch does", "[http][counters]")
{
    CHECK(wrongly_refused("memory", 10'000, 5, 10) == 0);
    CHECK(wrongly_refused("memory", 10'000, 1, 5) == 0);
    CHECK(wrongly_refused("sketch", 300, 5, 10) == 0);
    // Conservative updates stay below what the plain sketch of the row refuses.
    const auto many = wrongly_refused("sketch", 10'000, 5, 10);
    CHECK(many > 1);
    CHECK(many <= 69.7);
    CHECK(wrongly_refused("sketch", 10'000, 1, 5) <= 25.6);
}

TEST_CASE("P62: the sketch of a limit errs as 4 rows of 1024 do", "[http][counters]")
{
    const counters where;
    const auto     percent = [&](std::uint64_t keys) {
        return 100 * where.options().sketch.wrong_share(keys);
    };
    CHECK(percent(300) == Approx(0.41).epsilon(0.02));
    CHECK(percent(1'000) == Approx(15.1).epsilon(0.01));
    CHECK(percent(3'000) == Approx(80.3).epsilon(0.01));
    CHECK(percent(10'000) == Approx(99.98).epsilon(0.01));
}

TEST_CASE("P64: a sketch lets no key past its max", "[http][counters]")
{
    counters where;
    auto     options = fixed(3);
    options.store    = "sketch";
    const limit by_ip(options, where);
    int         most = 0;
    for (int i = 0; i < 2'000; ++i) {
        const auto text = "10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256);
        most            = std::max(most, passed(by_ip, caller(text), 5, t(0)));
    }
    CHECK(most == 3);
}

TEST_CASE("a store that is not known is named with those that are", "[http][counters]")
{
    counters                      where;
    weir::testing::scripted_store shared;
    where.add("shared", shared);
    auto options  = fixed(1);
    options.store = "sharde";
    CHECK_THROWS_WITH(limit(options, where), "weir: limit \"site\": there is no store \"sharde\"; "
                                             "there are memory, sketch, shared");
}

TEST_CASE("names of stores are taken once, and two are always", "[http][counters]")
{
    counters                      where;
    weir::testing::scripted_store shared;
    where.add("shared", shared);
    CHECK_THROWS_AS(where.add("shared", shared), std::invalid_argument);
    CHECK_THROWS_AS(where.add("memory", shared), std::invalid_argument);
    CHECK_THROWS_AS(where.add("sketch", shared), std::invalid_argument);
}

TEST_CASE("counters without room cannot be made", "[http][counters]")
{
    CHECK_THROWS_AS(counters({.max_keys = 0}), std::invalid_argument);
    CHECK_THROWS_AS(counters({.max_inflight = 0}), std::invalid_argument);
    CHECK_THROWS_AS(counters({.sketch = {.width = 0}}), std::invalid_argument);
}
