// SPDX-License-Identifier: BSL-1.0

#include "weir/http/shadow_log.hpp"

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using reference::caller;
using reference::t;
using weir::http::limit_options;
using weir::http::limit_step;
using weir::http::shadow_figures;

namespace {

/// A log that keeps its lines.
struct kept_log {
    std::vector<std::string> lines;
    weir::http::shadow_log   log{"rateLimit", "limit",
                               [this](std::string_view line) { lines.emplace_back(line); }};

    void refuse(weir::instant at, std::string_view matched = "192.0.2.1",
                std::string_view target = "/api/items")
    {
        const caller who("192.0.2.1", {}, target);
        log.would_refuse(who.visit(), {.status = 429, .reason = "too many", .matched = matched},
                         at);
    }
    bool ends(std::string_view tail) const
    {
        return !lines.empty() && lines.back().ends_with(tail);
    }
};

}  // namespace

TEST_CASE("P56 P57: the line says what the refusal would have said", "[http][shadow]")
{
    kept_log                kept;
    weir::http::counters    where;
    limit_options           options{.name = "rateLimit", .max = 10, .dry_run = true};
    const weir::http::limit limit(options, where, &kept.log);
    const caller            who("1.2.3.4");
    for (int i = 0; i < 10; ++i) CHECK_FALSE(reference::ask(limit, who, t(0)));
    CHECK(kept.lines.empty());
    CHECK_FALSE(reference::ask(limit, who, t(0)));
    REQUIRE(kept.lines.size() == 1);
    CHECK(kept.lines[0] ==
          "dry run, the request would have been refused category=\"limit\" location=\"api\" "
          "status=429 reason=Plugin limit, exceed limit 11/10 matched=\"1.2.3.4\" "
          "client_ip=\"1.2.3.4\" method=\"GET\" uri=/api/items request_id=\"\" skipped=0");
}

TEST_CASE("P56: a missing key that would be rejected goes on and is logged as 400",
          "[http][shadow]")
{
    kept_log                kept;
    weir::http::counters    where;
    const weir::http::limit limit({.name        = "byKey",
                                   .tag         = weir::http::limit_tag::header,
                                   .key         = "X-Api-Key",
                                   .max         = 1,
                                   .missing_key = weir::missing_key::reject,
                                   .dry_run     = true},
                                  where, &kept.log);
    CHECK_FALSE(reference::ask(limit, caller(), t(0)));
    REQUIRE(kept.lines.size() == 1);
    CHECK(kept.lines[0].find("status=400 reason=Plugin limit, the header X-Api-Key is required "
                             "matched=\"\"") != std::string::npos);
}

TEST_CASE("P57: what is matched is the value that the limit counts by", "[http][shadow]")
{
    kept_log             kept;
    weir::http::counters where;
    const auto           matched = [&](limit_options options, const caller& who) {
        options.name    = "case";
        options.max     = 0;
        options.dry_run = true;
        const weir::http::limit limit(options, where, &kept.log);
        CHECK_FALSE(reference::ask(limit, who, t(0)));
        const auto& line = kept.lines.back();
        const auto  from = line.find("matched=\"") + 9;
        return line.substr(from, line.find('"', from) - from);
    };
    using weir::http::limit_tag;
    CHECK(matched({.tag = limit_tag::cookie, .key = "id"},
                  caller("192.0.2.1", {{"Cookie", "id=abc"}})) == "abc");
    CHECK(matched({}, caller("2001:db8::1")) == "2001:db8::/64");
    CHECK(matched({.tag = limit_tag::ja4}, caller("192.0.2.1", {}, "/", "t13d")) == "t13d");
    CHECK(matched({.tag = limit_tag::ip_ja4}, caller("192.0.2.1", {}, "/", "t13d")) ==
          "192.0.2.1 t13d");
    CHECK(matched({.tag = limit_tag::ip_ja4}, caller("192.0.2.1")) == "192.0.2.1");
}

TEST_CASE("P58: ten lines in a second of the clock, then the next one tells the rest",
          "[http][shadow]")
{
    kept_log kept;
    for (int i = 0; i < 25; ++i) kept.refuse(t(1'000 + 40 * i - i));
    CHECK(kept.lines.size() == 10);
    CHECK(std::ranges::all_of(kept.lines,
                              [](const auto& line) { return line.ends_with("skipped=0"); }));
    kept.refuse(t(2'000));
    CHECK(kept.lines.size() == 11);
    CHECK(kept.ends("skipped=15"));
    CHECK(kept.log.figures() == shadow_figures{.seen = 26, .logged = 11, .skipped = 15});
}

TEST_CASE("P58: a request that is judged late opens no second again", "[http][shadow]")
{
    kept_log kept;
    for (int i = 0; i < 10; ++i) kept.refuse(t(2'000));
    for (int i = 0; i < 10; ++i) kept.refuse(t(1'999 + i % 2));
    CHECK(kept.lines.size() == 10);
}

TEST_CASE("seeds 2.22: skipped ones that no refusal follows are told by a flush, once",
          "[http][shadow]")
{
    kept_log kept;
    for (int i = 0; i < 25; ++i) kept.refuse(t(0));
    kept.log.flush();
    CHECK(kept.lines.size() == 11);
    CHECK(kept.lines.back() == "dry run, more requests would have been refused category=\"limit\" "
                               "name=\"rateLimit\" skipped=15");
    kept.log.flush();
    kept.refuse(t(1'000));
    CHECK(kept.lines.size() == 12);
    CHECK(kept.ends("skipped=0"));
}

TEST_CASE("P59: of 100 tries at max 10 all go on and 90 are logged or skipped", "[http][shadow]")
{
    kept_log                kept;
    weir::http::counters    where;
    limit_options           options{.name = "rateLimit", .max = 10, .dry_run = true};
    const weir::http::limit rate(options, where, &kept.log);
    CHECK(reference::passed(rate, caller(), 100, t(0)) == 100);
    CHECK(kept.log.figures() == shadow_figures{.seen = 90, .logged = 10, .skipped = 80});
}

TEST_CASE("P59: a place that would have been refused is not kept", "[http][shadow]")
{
    kept_log                kept;
    weir::http::counters    where;
    const weir::http::limit limit(
        {.name = "slots", .type = weir::http::limit_type::inflight, .max = 2, .dry_run = true},
        where, &kept.log);
    const caller        who;
    weir::http::passage through;
    for (int i = 0; i < 5; ++i) CHECK_FALSE(limit.admit(who.visit(), through, t(0)));
    CHECK(through.places() == 2);
    CHECK(kept.log.figures().seen == 3);
}

TEST_CASE("O57 B23: a dry run beside a limit counts would-be refusals and changes none",
          "[http][shadow]")
{
    const auto admitted = [](bool with_dry_run, kept_log& kept) {
        weir::http::counters                                  where;
        std::vector<std::shared_ptr<const weir::http::limit>> all;
        using weir::http::limit_policy;
        if (with_dry_run)
            all.push_back(
                std::make_shared<weir::http::limit>(limit_options{.name     = "dry",
                                                                  .max      = 1,
                                                                  .interval = 60s,
                                                                  .headers  = true,
                                                                  .dry_run  = true,
                                                                  .policy   = limit_policy::fixed},
                                                    where, &kept.log));
        all.push_back(std::make_shared<weir::http::limit>(
            limit_options{.name = "live", .max = 3, .interval = 60s, .policy = limit_policy::fixed},
            where));
        const weir::http::limits limits(all);
        const caller             who;
        std::vector<bool>        went_on;
        for (int i = 0; i < 5; ++i) {
            weir::http::passage through;
            went_on.push_back(!limits.admit(limit_step::request, who.visit(), through, t(0)));
            if (i > 0) CHECK(through.quota().fields().empty());
        }
        return went_on;
    };
    kept_log   kept, none;
    const auto went_on = admitted(true, kept);
    CHECK(went_on == std::vector{true, true, true, false, false});
    CHECK(went_on == admitted(false, none));
    CHECK(kept.log.figures().seen == 4);  // two of them were refused by the live one after it
}

TEST_CASE("no byte of a request ends a line or looks like a field of it", "[http][shadow]")
{
    kept_log kept;
    kept.refuse(t(0), "x\" skipped=9\r\nWARN \x1b[2J\xc3\xa9", "/a b\nskipped=7");
    REQUIRE(kept.lines.size() == 1);
    CHECK(kept.lines[0].find("matched=\"x\\x22 skipped=9\\x0d\\x0aWARN \\x1b[2J\\xc3\\xa9\"") !=
          std::string::npos);
    CHECK(kept.lines[0].find("uri=/a\\x20b\\x0askipped=7 request_id") != std::string::npos);
    CHECK(std::ranges::all_of(kept.lines[0], [](char c) { return c >= 0x20 && c < 0x7f; }));

    kept.refuse(t(0), std::string(100'000, 'a'));
    CHECK(kept.lines.back().size() < 1'000);
}

TEST_CASE("the most refused are listed by digest, the most first, and bounded", "[http][shadow]")
{
    kept_log kept;
    for (int i = 0; i < 1'000; ++i) {
        kept.refuse(t(0), "often");
        if (i % 2 == 0) kept.refuse(t(0), "less");
        if (i % 10 == 0) kept.refuse(t(0), "once " + std::to_string(i));
    }
    const auto listed = kept.log.most_refused();
    REQUIRE(listed.size() == weir::http::shadow_log::most_listed);
    CHECK(listed[0].who == kept.log.digest("often"));
    CHECK(listed[0].times == 1'000);
    CHECK(listed[1].who == kept.log.digest("less"));
    CHECK(listed[1].times - listed[1].too_far == 500);
    CHECK(kept.log.figures().seen == 1'600);
}
