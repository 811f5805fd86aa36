// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limit.hpp"

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using reference::ask;
using reference::caller;
using reference::field_of;
using reference::passed;
using reference::t;
using weir::http::limit_options;
using weir::http::limit_policy;
using weir::http::limit_tag;
using weir::http::limit_type;

namespace {

/// A rate by address in counters of its own.
class scene {
public:
    explicit scene(limit_options options) : limit(named(std::move(options)), counters_) {}

    weir::http::counters& counters() { return counters_; }

private:
    static limit_options named(limit_options options)
    {
        if (options.name.empty()) options.name = "case";
        return options;
    }
    weir::http::counters counters_{{.max_keys = 1000, .max_inflight = 100}};

public:
    weir::http::limit limit;
};

limit_options rate(std::uint64_t max, weir::duration interval)
{
    return {.max = max, .interval = interval};
}

limit_options inflight(std::uint64_t max) { return {.type = limit_type::inflight, .max = max}; }

/// How many of a request each `every`, from `from` until before `to`, go on.
int steadily(const weir::http::limit& limit, std::int64_t from, std::int64_t to, std::int64_t every)
{
    const caller who;
    int          count = 0;
    for (auto at = from; at < to; at += every) count += !ask(limit, who, t(at));
    return count;
}

}  // namespace

TEST_CASE("P16: of 601 requests at once to max 600 the last is refused", "[http][limit]")
{
    const scene  at_600(rate(600, 60s));
    const caller who;
    CHECK(passed(at_600.limit, who, 600, t(0)) == 600);
    const auto refused = ask(at_600.limit, who, t(0));
    REQUIRE(refused);
    CHECK(refused->status == 429);
    CHECK(refused->body == "Plugin limit, exceed limit 601/600");
}

TEST_CASE("P15: a request that takes the estimate to just max goes on", "[http][limit]")
{
    const scene  at_2(rate(2, 10s));
    const caller who;
    CHECK(passed(at_2.limit, who, 2, t(0)) == 2);
    CHECK_FALSE(ask(at_2.limit, who, t(15'000)));  // 2 × 0.5 + 1
    CHECK(ask(at_2.limit, who, t(15'000)));
}

TEST_CASE("P17: who used up the window before gets ten a second in the next", "[http][limit]")
{
    const scene  at_600(rate(600, 60s));
    const caller who;
    CHECK(passed(at_600.limit, who, 601, t(0)) == 600);
    CHECK(ask(at_600.limit, who, t(60'000)));
    CHECK_FALSE(ask(at_600.limit, who, t(60'100)));
    CHECK(steadily(at_600.limit, 60'200, 120'000, 100) == 598);
}

TEST_CASE("P18: 600 at the end of a window and a flood after it are 1198 in one interval",
          "[http][limit]")
{
    const scene  at_600(rate(600, 60s));
    const caller who;
    CHECK(passed(at_600.limit, who, 700, t(59'900)) == 600);
    CHECK(steadily(at_600.limit, 60'000, 119'900, 10) == 598);
}

TEST_CASE("P19: a refusal tells the estimate with its fraction", "[http][limit]")
{
    const scene  at_50(rate(50, 60s));
    const caller who;
    CHECK(passed(at_50.limit, who, 42, t(0)) == 42);
    CHECK(passed(at_50.limit, who, 18, t(75'000)) == 18);
    CHECK(ask(at_50.limit, who, t(75'000)).value().body == "Plugin limit, exceed limit 50.5/50");

    const scene at_1(rate(1, 10s));
    CHECK_FALSE(ask(at_1.limit, who, t(0)));
    CHECK(ask(at_1.limit, who, t(0)).value().body == "Plugin limit, exceed limit 2/1");
}

TEST_CASE("P20: a paced client is refused half of the time under max 1 and seldom under 100",
          "[http][limit]")
{
    const auto share = [](std::uint64_t max) {
        const scene slow(rate(max, 10s));
        const auto  every = static_cast<std::int64_t>(10'000 / max);
        return steadily(slow.limit, 0, 1'000 * every, every) / 10.0;
    };
    CHECK(share(1) == 50);
    CHECK(std::abs(share(2) - 51) < 1);
    CHECK(std::abs(share(5) - 80.5) < 1);
    CHECK(std::abs(share(10) - 90.3) < 1);
    CHECK(share(100) >= 98.5);
}

TEST_CASE("P21: what is refused is not counted", "[http][limit]")
{
    const scene  at_5(rate(5, 10s));
    const caller who;
    CHECK(passed(at_5.limit, who, 30, t(0)) == 5);
    CHECK(ask(at_5.limit, who, t(0)).value().body == "Plugin limit, exceed limit 6/5");
}

TEST_CASE("P22: under a flood a window gives max once and max - 1 from then on", "[http][limit]")
{
    const std::uint64_t max   = GENERATE(1u, 2u, 10u, 600u);
    const auto          few   = static_cast<int>(max);
    const auto          every = max == 600 ? 10 : 100;
    const scene         flooded(rate(max, 10s));
    std::vector<int>    passed_in;
    for (std::int64_t window = 0; window < 6; ++window)
        passed_in.push_back(steadily(flooded.limit, window * 10'000, (window + 1) * 10'000, every));
    if (max == 1) CHECK(passed_in == std::vector{1, 0, 1, 0, 1, 0});
    else CHECK(passed_in == std::vector{few, few - 1, few - 1, few - 1, few - 1, few - 1});
}

TEST_CASE("P23: over a long time no flood gets more than max an interval", "[http][limit]")
{
    const scene at_7(rate(7, 1s));
    CHECK(steadily(at_7.limit, 0, 1'000'000, 13) <= 7'000);
}

TEST_CASE("P24: an interval may be under a second", "[http][limit]")
{
    const scene  at_3(rate(3, 500ms));
    const caller who;
    CHECK(passed(at_3.limit, who, 10, t(0)) == 3);
    CHECK(passed(at_3.limit, who, 10, t(1'000)) == 3);
}

TEST_CASE("P26: two addresses have a count each", "[http][limit]")
{
    const scene at_5(rate(5, 10s));
    CHECK(passed(at_5.limit, caller("1.1.1.1"), 10, t(0)) == 5);
    CHECK(passed(at_5.limit, caller("1.1.1.2"), 10, t(0)) == 5);
}

TEST_CASE("seeds 4.2: max 1 in a second refuses on the edge and admits two windows on",
          "[http][limit]")
{
    const scene  at_1(rate(1, 1s));
    const caller who;
    CHECK_FALSE(ask(at_1.limit, who, t(0)));
    CHECK(field_of(ask(at_1.limit, who, t(1'000)).value().fields, "Retry-After") == "1");
    CHECK_FALSE(ask(at_1.limit, who, t(2'000)));
}

TEST_CASE("P28 P32: requests in progress are counted until their passage goes", "[http][limit]")
{
    const scene  at_2(inflight(2));
    const caller who;
    const auto   enter = [&](weir::http::passage& through) {
        return !at_2.limit.admit(who.visit(), through, t(0));
    };
    std::optional<weir::http::passage> first(std::in_place), second(std::in_place);
    CHECK(enter(*first));
    CHECK(enter(*second));
    CHECK(ask(at_2.limit, who, t(0)).value().body == "Plugin limit, exceed limit 3/2");
    first.reset();
    weir::http::passage third;
    CHECK(enter(third));
    CHECK(ask(at_2.limit, who, t(0)));
    second->leave();
    CHECK_FALSE(ask(at_2.limit, who, t(0)));
}

TEST_CASE("P29: max 0 refuses everything, max 1 passes one at a time", "[http][limit]")
{
    const caller who;
    const scene  at_0(inflight(0));
    CHECK(ask(at_0.limit, who, t(0)).value().body == "Plugin limit, exceed limit 1/0");
    CHECK(ask(scene(rate(0, 10s)).limit, who, t(0)).value().body ==
          "Plugin limit, exceed limit 1/0");

    const scene         at_1(inflight(1));
    weir::http::passage first;
    CHECK_FALSE(at_1.limit.admit(who.visit(), first, t(0)));
    CHECK(ask(at_1.limit, who, t(0)));
    CHECK_FALSE(ask(at_1.limit, caller("192.0.2.2"), t(0)));
}

TEST_CASE("a refusal of requests in progress tells no wait", "[http][limit]")
{
    const auto refused = ask(scene(inflight(0)).limit, caller(), t(0)).value();
    CHECK_FALSE(field_of(refused.fields, "Retry-After"));
    CHECK(field_of(refused.fields, "Cache-Control") == "no-store");
}

TEST_CASE("P33: 30 forged forwarded addresses from one peer are one client", "[http][limit]")
{
    const scene at_5(rate(5, 10s));
    int         count = 0;
    for (const auto* const header : {"X-Forwarded-For", "X-Real-IP"})
        for (int i = 1; i <= 30; ++i) {
            const auto forged = "203.0.113." + std::to_string(i);
            count += !ask(at_5.limit, caller("198.51.100.1", {{header, forged}}), t(0));
        }
    CHECK(count == 5);
}

TEST_CASE("P33 P34: forwarded addresses are clients behind a listed proxy only", "[http][limit]")
{
    const weir::client_ip listed({.trusted = {"10.0.0.0/8"}, .warn = nullptr});
    const auto            from = [&](const char* proxy, const char* who, const scene& of) {
        return passed(of.limit, caller(proxy, {{"X-Forwarded-For", who}}, "/", {}, listed), 10,
                                 t(0));
    };
    const scene at_5(rate(5, 10s));
    CHECK(from("10.0.0.1", "203.0.113.1", at_5) == 5);
    CHECK(from("10.0.0.1", "203.0.113.2", at_5) == 5);
    CHECK(from("192.0.2.77", "203.0.113.3", at_5) == 5);
    CHECK(from("192.0.2.77", "203.0.113.4", at_5) == 0);
}

TEST_CASE("P36 O12: without a value a request passes, is rejected or shares a count",
          "[http][limit]")
{
    struct row {
        limit_tag   tag;
        const char* key;
        const char* text;
    };
    const auto [tag, key, text] = GENERATE(
        row{limit_tag::header, "X-API-Key", "Plugin limit, the header X-API-Key is required"},
        row{limit_tag::cookie, "deviceId", "Plugin limit, the cookie deviceId is required"},
        row{limit_tag::query, "token", "Plugin limit, the query parameter token is required"},
        row{limit_tag::ja4, "",
            "Plugin limit, a TLS connection with a JA4 fingerprint is required"});
    auto options    = rate(1, 10s);
    options.tag     = tag;
    options.key     = key;
    options.status  = 503;
    options.message = "slow down";
    const caller empty("192.0.2.1", {{"X-API-Key", ""}, {"Cookie", "deviceId="}}, "/?token=");

    CHECK(passed(scene(options).limit, caller(), 10, t(0)) == 10);
    CHECK(passed(scene(options).limit, empty, 10, t(0)) == 10);

    options.missing_key = weir::missing_key::reject;
    const caller without;
    for (const auto* who : {&empty, &without}) {
        const auto rejected = ask(scene(options).limit, *who, t(0)).value();
        CHECK(rejected.status == 400);
        CHECK(rejected.body == text);
        CHECK_FALSE(field_of(rejected.fields, "Retry-After"));
    }

    options.missing_key = weir::missing_key::shared_bucket;
    const scene shared(options);
    CHECK_FALSE(ask(shared.limit, empty, t(0)));
    CHECK(ask(shared.limit, caller("192.0.2.2"), t(0)).value().status == 503);
}

TEST_CASE("a value that cannot be counted is rejected whatever missing_key says", "[http][limit]")
{
    auto options        = rate(1, 10s);
    options.tag         = limit_tag::header;
    options.key         = "X-API-Key";
    options.missing_key = weir::missing_key::pass;
    const scene by_key(options);
    const auto  told =
        ask(by_key.limit, caller("192.0.2.1", {{"X-API-Key", "a"}, {"X-API-Key", "b"}}), t(0))
            .value();
    CHECK(told.status == 400);
    CHECK(told.body == "Plugin limit, the header X-API-Key is ambiguous");
}

TEST_CASE("P35: the values of a header, a cookie and a parameter have a count each",
          "[http][limit]")
{
    struct row {
        limit_tag   tag;
        const char* key;
    };
    const auto [tag, key] =
        GENERATE(row{limit_tag::header, "X-API-Key"}, row{limit_tag::cookie, "deviceId"},
                 row{limit_tag::query, "token"});
    auto options = rate(2, 10s);
    options.tag  = tag;
    options.key  = key;
    const scene  by_value(options);
    const caller one("192.0.2.1", {{"x-api-key", "one"}, {"Cookie", "deviceid=x; deviceId=one"}},
                     "/?TOKEN=x&token=one");
    const caller two("192.0.2.1", {{"x-api-key", "two"}, {"Cookie", "deviceId=two"}},
                     "/?token=two");
    CHECK(passed(by_value.limit, one, 5, t(0)) == 2);
    CHECK(passed(by_value.limit, two, 5, t(0)) == 2);
}

TEST_CASE("P37: a fingerprint is one count from any address", "[http][limit]")
{
    auto options = rate(3, 10s);
    options.tag  = limit_tag::ja4;
    const scene by_ja4(options);
    const auto  from = [&](const char* address, const char* ja4) {
        return passed(by_ja4.limit, caller(address, {}, "/", ja4), 2, t(0));
    };
    CHECK(from("192.0.2.1", "t13d1516h2_8daaf6152771_e5627efa2ab1") == 2);
    CHECK(from("192.0.2.2", "t13d1516h2_8daaf6152771_e5627efa2ab1") == 1);
    CHECK(from("192.0.2.2", "t13d1715h2_5b57614c22b0_3d5424432f57") == 2);
}

TEST_CASE("P37: address and fingerprint are one count, the address alone without one",
          "[http][limit]")
{
    auto options        = rate(2, 10s);
    options.tag         = limit_tag::ip_ja4;
    options.missing_key = weir::missing_key::reject;
    const scene by_both(options);
    const auto  from = [&](const char* address, const char* ja4) {
        return passed(by_both.limit, caller(address, {}, "/", ja4), 3, t(0));
    };
    CHECK(from("192.0.2.1", "t13d1516h2_8daaf6152771_e5627efa2ab1") == 2);
    CHECK(from("192.0.2.2", "t13d1516h2_8daaf6152771_e5627efa2ab1") == 2);
    CHECK(from("192.0.2.1", "t13d1715h2_5b57614c22b0_3d5424432f57") == 2);
    CHECK(from("192.0.2.1", "") == 2);
    CHECK(from("192.0.2.2", "") == 2);
    CHECK(from("192.0.2.2", "") == 0);
}

TEST_CASE("F09: by location all requests to one share a count", "[http][limit]")
{
    auto options        = rate(3, 10s);
    options.tag         = limit_tag::location;
    options.missing_key = weir::missing_key::reject;
    const scene by_location(options);
    const auto  goes_on = [&](const char* address, const char* location) {
        const caller        who(address);
        auto                visit = who.visit();
        weir::http::passage through;
        visit.location = location;
        return !by_location.limit.admit(visit, through, t(0));
    };
    CHECK(goes_on("192.0.2.1", "contact"));
    CHECK(goes_on("192.0.2.2", "contact"));
    CHECK(goes_on("192.0.2.3", "contact"));
    CHECK_FALSE(goes_on("192.0.2.4", "contact"));
    CHECK(goes_on("192.0.2.4", "other"));
    CHECK(goes_on("192.0.2.4", ""));
}

TEST_CASE("P43 P45: status and message are the operator's, Retry-After stays", "[http][limit]")
{
    auto options    = rate(0, 30s);
    options.max     = 1;
    options.status  = 503;
    options.message = "slow down";
    const scene  strict(options);
    const caller who;
    CHECK_FALSE(ask(strict.limit, who, t(0)));
    const auto refused = ask(strict.limit, who, t(0)).value();
    CHECK(refused.status == 503);
    CHECK(refused.body == "slow down");
    CHECK(field_of(refused.fields, "Retry-After") == "30");
    CHECK(field_of(refused.fields, "Content-Type") == "text/plain; charset=utf-8");
}

TEST_CASE("P44: Retry-After is the interval in seconds, rounded up", "[http][limit]")
{
    struct row {
        weir::duration interval;
        const char*    seconds;
    };
    const auto [interval, seconds] =
        GENERATE(row{30s, "30"}, row{1min, "60"}, row{500ms, "1"}, row{1500ms, "2"});
    const scene  at_1(rate(1, interval));
    const caller who;
    CHECK_FALSE(ask(at_1.limit, who, t(0)));
    CHECK(field_of(ask(at_1.limit, who, t(10)).value().fields, "Retry-After") == seconds);
}

TEST_CASE("Retry-After is the real wait where that is asked for", "[http][limit]")
{
    auto options        = rate(1, 10s);
    options.retry_after = weir::http::told_wait::exact;
    const scene  at_1(options);
    const caller who;
    CHECK_FALSE(ask(at_1.limit, who, t(5'000)));
    CHECK(field_of(ask(at_1.limit, who, t(5'000)).value().fields, "Retry-After") == "15");
}

TEST_CASE("max 0 tells no wait, since none helps", "[http][limit]")
{
    const auto refused = ask(scene(rate(0, 30s)).limit, caller(), t(0)).value();
    CHECK_FALSE(field_of(refused.fields, "Retry-After"));
}

TEST_CASE("O15: paths of one location share a count", "[http][limit]")
{
    const scene at_3(rate(3, 60s));
    int         count = 0;
    for (const auto* path : {"/lang", "/LANG", "/lang/", "//lang", "/./lang"})
        count += !ask(at_3.limit, caller("192.0.2.1", {}, path), t(0));
    CHECK(count == 3);
    auto options = rate(1, 60s);
    options.tag  = limit_tag::header;
    options.key  = "X-Api-Key";
    const scene verify(options);
    CHECK_FALSE(ask(verify.limit, caller("192.0.2.1", {{"X-Api-Key", "k"}}, "/verify/AAA"), t(0)));
    CHECK(ask(verify.limit, caller("192.0.2.1", {{"X-Api-Key", "k"}}, "/verify/BBB"), t(0)));
}

TEST_CASE("an IPv6 client is counted by its prefix", "[http][limit]")
{
    const scene by_64(rate(1, 10s));
    CHECK_FALSE(ask(by_64.limit, caller("2001:db8::1"), t(0)));
    CHECK(ask(by_64.limit, caller("2001:db8::2"), t(0)));

    auto options        = rate(1, 10s);
    options.ipv6_prefix = 128;
    const scene by_128(options);
    CHECK_FALSE(ask(by_128.limit, caller("2001:db8::1"), t(0)));
    CHECK_FALSE(ask(by_128.limit, caller("2001:db8::2"), t(0)));
}

TEST_CASE("clients without an address share one count, whatever missing_key says", "[http][limit]")
{
    const scene at_1(rate(1, 10s));
    CHECK_FALSE(ask(at_1.limit, caller("unix:/a"), t(0)));
    CHECK(ask(at_1.limit, caller("unix:/b"), t(0)));
}

TEST_CASE("a wider tier stops many prefixes, and what it refuses spends nothing", "[http][limit]")
{
    auto options  = rate(2, 10s);
    options.name  = "site";
    options.tiers = {{.prefix = 48, .max = 3}, {.prefix = 32, .max = 4}};
    scene in_tiers(options);
    CHECK(passed(in_tiers.limit, caller("2001:db8:0:1::1"), 5, t(0)) == 2);
    CHECK(passed(in_tiers.limit, caller("2001:db8:0:2::1"), 5, t(0)) == 1);
    const auto refused = ask(in_tiers.limit, caller("2001:db8:0:2::1"), t(0)).value();
    CHECK(refused.body == "Plugin limit, exceed limit 4/3");
    CHECK(passed(in_tiers.limit, caller("2001:db8:1:1::1"), 5, t(0)) == 1);
    CHECK(ask(in_tiers.limit, caller("2001:db8:1:1::1"), t(0)).value().body ==
          "Plugin limit, exceed limit 5/4");
    CHECK(passed(in_tiers.limit, caller("192.0.2.1"), 5, t(0)) == 2);

    // For all the refusals by a tier the second prefix has spent one of its two: the same count
    // without tiers shows the other.
    options.tiers.clear();
    const weir::http::limit alone(options, in_tiers.counters());
    CHECK(passed(alone, caller("2001:db8:0:2::1"), 5, t(0)) == 1);
}

TEST_CASE("allowed ranges are neither limited nor counted", "[http][limit]")
{
    auto options  = rate(1, 10s);
    options.tag   = limit_tag::header;
    options.key   = "X-Api-Key";
    options.allow = {"10.0.0.0/8", "2001:db8::/32"};
    const scene by_key(options);
    CHECK(passed(by_key.limit, caller("10.1.2.3", {{"X-Api-Key", "k"}}), 5, t(0)) == 5);
    CHECK(passed(by_key.limit, caller("2001:db8::9", {{"X-Api-Key", "k"}}), 5, t(0)) == 5);
    CHECK(passed(by_key.limit, caller("192.0.2.1", {{"X-Api-Key", "k"}}), 5, t(0)) == 1);
}

TEST_CASE("single values have a max of their own", "[http][limit]")
{
    auto options      = rate(1, 10s);
    options.overrides = {{"192.0.2.9", 3}, {"2001:db8::1", 2}, {"192.0.2.8", 0}};
    const scene by_ip(options);
    CHECK(passed(by_ip.limit, caller("192.0.2.1"), 5, t(0)) == 1);
    CHECK(passed(by_ip.limit, caller("192.0.2.9"), 5, t(0)) == 3);
    CHECK(passed(by_ip.limit, caller("2001:db8::77"), 5, t(0)) == 2);
    CHECK(ask(by_ip.limit, caller("192.0.2.8"), t(0)).value().body ==
          "Plugin limit, exceed limit 1/0");

    auto in_progress      = inflight(1);
    in_progress.tag       = limit_tag::header;
    in_progress.key       = "X-Api-Key";
    in_progress.overrides = {{"big", 2}};
    const scene  by_key(in_progress);
    const caller big("192.0.2.1", {{"X-Api-Key", "big"}}), small("192.0.2.1", {{"X-Api-Key", "s"}});
    weir::http::passage through;
    CHECK_FALSE(by_key.limit.admit(big.visit(), through, t(0)));
    CHECK_FALSE(by_key.limit.admit(big.visit(), through, t(0)));
    CHECK_FALSE(by_key.limit.admit(small.visit(), through, t(0)));
    CHECK(ask(by_key.limit, big, t(0)).value().body == "Plugin limit, exceed limit 3/2");
    CHECK(ask(by_key.limit, small, t(0)).value().body == "Plugin limit, exceed limit 2/1");
}

TEST_CASE("each policy has its own bound", "[http][limit]")
{
    const auto by = [](limit_policy policy, std::optional<std::uint64_t> burst = {}) {
        auto options   = rate(10, 10s);
        options.policy = policy;
        options.burst  = burst;
        return std::make_unique<scene>(options);
    };
    const caller who;

    const auto fixed = by(limit_policy::fixed);
    CHECK(passed(fixed->limit, who, 20, t(9'999)) == 10);
    CHECK(passed(fixed->limit, who, 20, t(10'000)) == 10);
    CHECK(ask(fixed->limit, who, t(10'000)).value().body == "Plugin limit, exceed limit 11/10");

    const auto gcra = by(limit_policy::gcra, 4);
    CHECK(passed(gcra->limit, who, 20, t(0)) == 4);
    CHECK(passed(gcra->limit, who, 20, t(1'000)) == 1);
    CHECK(ask(gcra->limit, who, t(1'500)).value().body == "Plugin limit, exceed limit 4.5/4");

    const auto wide = by(limit_policy::gcra, 15);
    CHECK(passed(wide->limit, who, 20, t(0)) == 15);
    CHECK(passed(wide->limit, who, 20, t(1'000)) == 1);

    const auto strict = by(limit_policy::strict);
    CHECK(passed(strict->limit, who, 20, t(0)) == 5);
    CHECK(steadily(strict->limit, 1, 10'000, 100) == 5);
    const auto tight = by(limit_policy::strict, 1);
    CHECK(steadily(tight->limit, 0, 10'000, 10) == 10);
}

TEST_CASE("a refusal has the shape that is asked for", "[http][limit]")
{
    auto options = rate(1, 30s);
    options.name = "site";
    const caller who;
    const auto   refused = [&](weir::refusal_body body) {
        options.body = body;
        const scene at_1(options);
        return passed(at_1.limit, who, 1, t(0)) == 1 ? *ask(at_1.limit, who, t(0))
                                                       : weir::http::answer{};
    };
    const auto problem = refused(weir::refusal_body::problem);
    CHECK(field_of(problem.fields, "Content-Type") == "application/problem+json");
    CHECK(problem.body.find(R"("violated-policies":["site"])") != std::string::npos);
    CHECK(problem.body.find("Try again in 30 seconds.") != std::string::npos);
    CHECK(refused(weir::refusal_body::minimal).body == R"({"error":"too_many"})");
    const auto envelope = refused(weir::refusal_body::envelope);
    CHECK(envelope.body.find(R"("retry_after_seconds":30)") != std::string::npos);
}

TEST_CASE("a problem names all tiers that refused", "[http][limit]")
{
    auto options  = rate(1, 30s);
    options.name  = "site";
    options.tiers = {{.prefix = 48, .max = 1}};
    options.body  = weir::refusal_body::problem;
    const scene  in_tiers(options);
    const caller who("2001:db8::1");
    CHECK_FALSE(ask(in_tiers.limit, who, t(0)));
    CHECK(ask(in_tiers.limit, who, t(0))
              .value()
              .body.find(R"("violated-policies":["site","site/48"])") != std::string::npos);
}

TEST_CASE("a shared store that answers later is asked by callback, and keeps the time",
          "[http][limit]")
{
    reference::own_clock_store shared(t(0), reference::own_clock_store::completion::on_a_thread);
    weir::http::counters       where;
    where.add("shared", shared);
    auto options        = rate(1, 10s);
    options.name        = "site";
    options.store       = "shared";
    options.retry_after = weir::http::told_wait::exact;
    const weir::http::limit limit(options, where);
    CHECK(limit.answers_later());

    const caller                                    who;
    const auto                                      visit = who.visit();
    weir::http::passage                             through;
    std::promise<std::optional<weir::http::answer>> first, second;
    limit.admit_then(visit, through, [&](auto said) { first.set_value(std::move(said)); });
    CHECK_FALSE(first.get_future().get());
    limit.admit_then(visit, through, [&](auto said) { second.set_value(std::move(said)); });
    const auto refused = second.get_future().get();
    REQUIRE(refused);
    CHECK(refused->body == "Plugin limit, exceed limit 2/1");
    CHECK(field_of(refused->fields, "Retry-After") == "20");
    shared.advance(20s);
    CHECK_FALSE(ask(limit, who, t(0)));
    shared.finish();
}

TEST_CASE("on a store that answers later a tier that refuses has let the narrower spend",
          "[http][limit]")
{
    reference::own_clock_store shared(t(0));
    weir::http::counters       where;
    where.add("shared", shared);
    auto options  = rate(2, 10s);
    options.name  = "site";
    options.store = "shared";
    options.tiers = {{.prefix = 48, .max = 1}};
    const weir::http::limit limit(options, where);
    const caller            one("2001:db8:0:1::1"), two("2001:db8:0:2::1");
    weir::http::passage     through;
    std::vector<bool>       went_on;
    const auto              admit = [&](const caller& who) {
        const auto visit = who.visit();
        limit.admit_then(visit, through, [&](auto said) { went_on.push_back(!said); });
    };
    admit(one);
    admit(two);
    admit(two);
    CHECK(went_on == std::vector{true, false, false});
    CHECK(shared.asked(weir::verb::spend) == 6);
}

TEST_CASE("a limit that nothing can fit does not ask a shared store", "[http][limit]")
{
    reference::own_clock_store shared(t(0));
    weir::http::counters       where;
    where.add("shared", shared);
    auto options  = rate(0, 10s);
    options.name  = "site";
    options.store = "shared";
    const weir::http::limit limit(options, where);
    weir::http::passage     through;
    const caller            who;
    const auto              visit = who.visit();
    std::string             body;
    limit.admit_then(visit, through, [&](auto said) { body = said->body; });
    CHECK(body == "Plugin limit, exceed limit 1/0");
    CHECK(shared.asked() == 0);
}

TEST_CASE("a limit tells the memory of its counts, that of places too, before anybody is counted",
          "[http][limit]")
{
    const scene by_rate(rate(1, 1s)), at_once(inflight(1));
    CHECK(by_rate.limit.bytes() >= 1000 * 32);
    CHECK(at_once.limit.bytes() >= 100 * 88);
    auto estimated  = rate(1, 1s);
    estimated.store = "sketch";
    const scene by_sketch(estimated);
    CHECK(by_sketch.limit.bytes() >= 4 * 1024 * 8);
}
