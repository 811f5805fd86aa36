// SPDX-License-Identifier: BSL-1.0

#include "weir/http/quota_headers.hpp"

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"
#include "weir/testing/scripted_store.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using reference::caller;
using reference::field_of;
using reference::t;
using weir::http::budget;
using weir::http::limit_options;
using weir::http::limit_step;
using weir::http::limit_type;
using weir::http::quota_form;
using weir::http::quota_note;

namespace {

std::optional<std::string> x_limit(const quota_note& note)
{
    return field_of(note.fields(), "X-RateLimit-Limit");
}
std::optional<std::string> x_remaining(const quota_note& note)
{
    return field_of(note.fields(), "X-RateLimit-Remaining");
}
std::optional<std::string> x_reset(const quota_note& note)
{
    return field_of(note.fields(), "X-RateLimit-Reset");
}

/// Several limits of one location.
class location {
public:
    location& with(limit_options options)
    {
        options.name = "limit" + std::to_string(all_.size());
        all_.push_back(std::make_shared<const weir::http::limit>(options, counters_));
        limits = weir::http::limits(all_);
        return *this;
    }

    /// What the next request's responses tell.
    quota_note next(weir::instant at = t(0))
    {
        const caller        who;
        weir::http::passage through;
        refused = limits.admit(limit_step::request, who.visit(), through, at).has_value();
        return through.quota();
    }

private:
    weir::http::counters                                  counters_{{.max_keys = 100}};
    std::vector<std::shared_ptr<const weir::http::limit>> all_;

public:
    weir::http::limits limits;
    bool               refused = false;
};

limit_options reporting(std::uint64_t max, weir::duration interval = 60s)
{
    return {.max = max, .interval = interval, .headers = true};
}

limit_options silent(std::uint64_t max) { return {.max = max, .interval = 60s}; }

budget of(std::uint64_t limit, std::uint64_t left)
{
    return {.limit = limit, .left = left, .quota = limit};
}

}  // namespace

TEST_CASE("P46 P47: what is left is told with this request counted", "[http][quota]")
{
    location api;
    api.with(reporting(3));
    for (const auto* left : {"2", "1", "0"}) {
        const auto note = api.next();
        CHECK(x_limit(note) == "3");
        CHECK(x_remaining(note) == left);
        CHECK_FALSE(api.refused);
    }
    const auto note = api.next();
    CHECK(api.refused);
    CHECK(x_remaining(note) == "0");
}

TEST_CASE("P48 P49: reset is when all of it is back, whole seconds and at least 1", "[http][quota]")
{
    struct row {
        int            before;  // requests in the window before
        int            current;
        weir::duration interval;
        std::int64_t   at;  // milliseconds after the start of the window
        const char*    reset;
    };
    const auto one = GENERATE(row{0, 1, 60s, 30'000, "90"}, row{3, 1, 60s, 0, "120"},
                              row{1, 1, 100ms, 99, "1"}, row{0, 1, 60s, 59'999, "61"});
    location   api;
    api.with(reporting(10, one.interval));
    const auto window = one.interval / 1ms;
    for (int i = 0; i < one.before; ++i) api.next(t(0));
    CHECK(x_reset(api.next(t(window + one.at))) == one.reset);
}

TEST_CASE("P48: reset of a window that is only remembered is its rest", "[http][quota]")
{
    location api;
    api.with(reporting(1));
    api.next(t(0));
    const auto note = api.next(t(90'000));
    CHECK(api.refused);
    CHECK(x_reset(note) == "30");

    location never;
    never.with(reporting(0));
    CHECK(x_reset(never.next()) == "0");
}

TEST_CASE("P50: requests in progress have no reset", "[http][quota]")
{
    location api;
    api.with({.type = limit_type::inflight, .max = 5, .headers = true});
    const auto note = api.next();
    CHECK(x_limit(note) == "5");
    CHECK(x_remaining(note) == "4");
    CHECK_FALSE(x_reset(note));
}

TEST_CASE("P51: the budget is there for whatever answers the request", "[http][quota]")
{
    location api;
    api.with(reporting(3));
    weir::http::passage through;
    const caller        who;
    CHECK_FALSE(api.limits.admit(limit_step::request, who.visit(), through, t(0)));
    // A 401 of another filter and a 502 page ask the passage as the upstream's response does.
    CHECK(x_remaining(through.quota()) == "2");
}

TEST_CASE("P52: the least left is told, in whatever order", "[http][quota]")
{
    CHECK(x_limit(location().with(reporting(100)).with(reporting(2)).next()) == "2");
    CHECK(x_limit(location().with(reporting(2)).with(reporting(100)).next()) == "2");
}

TEST_CASE("P52: of equal ones the first stays", "[http][quota]")
{
    quota_note note;
    note.admitted(of(10, 4));
    note.admitted(of(5, 4));
    CHECK(x_limit(note) == "10");
}

TEST_CASE("P53: a refusal carries the refuser's budget", "[http][quota]")
{
    location api;
    api.with(reporting(2)).with(reporting(1));
    CHECK(x_limit(api.next()) == "1");
    const auto note = api.next();
    CHECK(api.refused);
    CHECK(x_limit(note) == "1");
}

TEST_CASE("P53: what is admitted after a refusal changes nothing", "[http][quota]")
{
    quota_note note;
    note.refused(of(7, 0));
    note.admitted(of(5, 0));
    CHECK(x_limit(note) == "7");
    quota_note none;
    none.refused(std::nullopt);
    none.admitted(of(5, 0));
    CHECK(none.fields().empty());
}

TEST_CASE("P54: a refusal by a limit that does not report carries none", "[http][quota]")
{
    location api;
    api.with(reporting(100)).with(silent(1));
    CHECK(x_limit(api.next()) == "100");
    CHECK(api.next().fields().empty());
    CHECK(api.refused);
}

TEST_CASE("P55: without headers nothing is told anywhere", "[http][quota]")
{
    location api;
    api.with(silent(1));
    CHECK(api.next().fields().empty());
    CHECK(api.next().fields().empty());
    CHECK(api.refused);
}

TEST_CASE("P36: who is not counted is told no budget", "[http][quota]")
{
    location api;
    auto     options = reporting(5);
    options.tag      = weir::http::limit_tag::header;
    options.key      = "X-Api-Key";
    api.with(options);
    CHECK(api.next().fields().empty());
}

TEST_CASE("P60: dry run reports within the limit and is silent over it", "[http][quota]")
{
    auto dry    = reporting(1);
    dry.dry_run = true;
    location alone;
    alone.with(dry);
    CHECK(x_remaining(alone.next()) == "0");
    CHECK(alone.next().fields().empty());
    CHECK_FALSE(alone.refused);

    location beside;
    beside.with(reporting(9)).with(dry);
    beside.next();
    CHECK(x_limit(beside.next()) == "9");
}

TEST_CASE("R2: the draft's fields are there by name only", "[http][quota]")
{
    auto options  = reporting(100);
    options.quota = quota_form::draft_11;
    location api;
    api.with(options);
    const auto note = api.next(t(30'000));
    CHECK(field_of(note.fields(), "RateLimit-Policy") == R"("limit0";q=100;w=60)");
    CHECK(field_of(note.fields(), "RateLimit") == R"("limit0";r=99;t=90)");
    CHECK_FALSE(x_limit(note));

    options.quota = quota_form::both;
    location both;
    both.with(options);
    CHECK(both.next().fields().size() == 5);
    location plain;
    plain.with(reporting(100));
    CHECK_FALSE(field_of(plain.next().fields(), "RateLimit"));
}

TEST_CASE("R2: requests in progress are another unit of the draft, without a window",
          "[http][quota]")
{
    location api;
    api.with(
        {.type = limit_type::inflight, .max = 5, .headers = true, .quota = quota_form::draft_11});
    const auto fields = api.next().fields();
    CHECK(field_of(fields, "RateLimit-Policy") == R"("limit0";q=5;qu="concurrent-requests")");
    CHECK(field_of(fields, "RateLimit") == R"("limit0";r=4)");
}

TEST_CASE("R2: no name breaks out of its quotes", "[http][quota]")
{
    quota_note note;
    auto       one = of(1, 0);
    one.form       = quota_form::draft_11;
    one.window     = 1s;
    one.name       = std::make_shared<const std::string>("a\"b\\c\r\n\xc3\xa9");
    note.admitted(one);
    CHECK(field_of(note.fields(), "RateLimit") == R"("a\"b\\c????";r=0)");
}

TEST_CASE("a store that is away tells no budget, and refuses with 503 without Retry-After",
          "[http][quota]")
{
    const auto verdict = GENERATE(weir::verdict::refused, weir::verdict::admitted);
    weir::testing::scripted_store away({{verdict, weir::basis::store_unavailable}});
    weir::http::counters          where;
    where.add("shared", away);
    auto options  = reporting(5);
    options.name  = "site";
    options.store = "shared";
    const weir::http::limit limit(options, where);
    const caller            who;
    weir::http::passage     through;
    const auto              said = limit.admit(who.visit(), through, t(0));
    CHECK(through.quota().fields().empty());
    REQUIRE(said.has_value() == (verdict == weir::verdict::refused));
    if (!said) return;
    CHECK(said->status == 503);
    CHECK(said->body == "Temporarily unavailable.\n");
    CHECK_FALSE(field_of(said->fields, "Retry-After"));
}
