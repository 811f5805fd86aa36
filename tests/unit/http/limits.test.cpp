// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limits.hpp"

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;
using reference::caller;
using reference::t;
using weir::http::limit_options;
using weir::http::limit_step;
using weir::http::limit_tag;
using weir::http::limit_type;

namespace {

class location {
public:
    location& with(limit_options options)
    {
        if (options.name.empty()) options.name = "limit" + std::to_string(all_.size());
        all_.push_back(std::make_shared<const weir::http::limit>(options, counters_));
        limits = weir::http::limits(all_);
        return *this;
    }

    bool goes_on(const caller& who, limit_step step = limit_step::request,
                 weir::instant at = t(0)) const
    {
        weir::http::passage through;
        return !limits.admit(step, who.visit(), through, at);
    }

    weir::http::counters& counters() { return counters_; }

private:
    weir::http::counters counters_{{.max_keys = 100, .max_inflight = 8}};
    std::vector<std::shared_ptr<const weir::http::limit>> all_;

public:
    weir::http::limits limits;
};

}  // namespace

TEST_CASE("B21: limits by different values are skipped where theirs is missing", "[http][limits]")
{
    location api;
    api.with({.tag = limit_tag::query, .key = "b", .max = 1'000, .interval = 1s})
        .with({.tag = limit_tag::query, .key = "a", .max = 1, .interval = 60s});
    const auto goes_on = [&](const char* target, std::int64_t at) {
        return api.goes_on(caller("192.0.2.1", {}, target), limit_step::request, t(at));
    };
    CHECK(goes_on("/?b=1", 0));
    CHECK(goes_on("/?b=1", 100));
    CHECK(goes_on("/?a=1", 200));
    CHECK_FALSE(goes_on("/?a=1", 300));
    CHECK(goes_on("/?a=2&b=2", 400));
    CHECK_FALSE(goes_on("/?a=2&b=2", 500));
    CHECK(goes_on("/", 600));
    CHECK(goes_on("/", 700));
}

TEST_CASE("P41: each step asks its own limits", "[http][limits]")
{
    location api;
    api.with({.max = 3}).with({.max = 1, .step = limit_step::proxy_upstream});
    const caller who;
    CHECK(api.goes_on(who));
    CHECK(api.goes_on(who));
    CHECK(api.goes_on(who, limit_step::proxy_upstream));
    CHECK_FALSE(api.goes_on(who, limit_step::proxy_upstream));
    CHECK(api.goes_on(who));
    CHECK_FALSE(api.goes_on(who));
    CHECK(api.limits.any(limit_step::proxy_upstream));
}

TEST_CASE("P42: what the second limit refuses has spent of the first", "[http][limits]")
{
    location api;
    api.with({.max = 3}).with({.tag = limit_tag::header, .key = "X-Api-Key", .max = 1});
    const caller keyed("192.0.2.1", {{"X-Api-Key", "k"}});
    CHECK(api.goes_on(keyed));
    CHECK_FALSE(api.goes_on(keyed));
    CHECK(api.goes_on(caller("192.0.2.1")));
    CHECK_FALSE(api.goes_on(caller("192.0.2.1")));
}

TEST_CASE("P30: two limits of requests in progress hold two places, and both come back",
          "[http][limits]")
{
    location api;
    api.with({.name = "one", .type = limit_type::inflight, .max = 1})
        .with({.name = "two", .type = limit_type::inflight, .max = 5});
    const caller                       who;
    std::optional<weir::http::passage> first(std::in_place);
    CHECK_FALSE(api.limits.admit(limit_step::request, who.visit(), *first, t(0)));
    CHECK(first->places() == 2);
    CHECK_FALSE(api.goes_on(who));
    const auto two = api.counters().places("two", 5, 8);
    CHECK(two->held() == 1);
    first.reset();
    CHECK(two->held() == 0);
    CHECK(api.goes_on(who));
}

TEST_CASE("limits that answer later are walked in order, on whatever thread answers",
          "[http][limits]")
{
    using completion               = reference::own_clock_store::completion;
    const auto                 way = GENERATE(completion::at_once, completion::on_a_thread);
    reference::own_clock_store shared(t(0), way);
    location                   api;
    api.counters().add("shared", shared);
    api.with({.max = 4, .store = "shared"})
        .with({.max = 100})
        .with({.max = 2, .store = "shared"})
        .with({.max = 0, .step = limit_step::proxy_upstream});
    CHECK(api.limits.answers_later(limit_step::request));
    CHECK_FALSE(api.limits.answers_later(limit_step::proxy_upstream));

    const caller     who;
    const auto       visit = who.visit();
    std::vector<int> told;
    for (int i = 0; i < 5; ++i) {
        weir::http::passage through;
        std::promise<int>   said;
        api.limits.admit_then(limit_step::request, visit, through,
                              [&](auto answer) { said.set_value(answer ? answer->status : 0); });
        told.push_back(said.get_future().get());
    }
    CHECK(told == std::vector{0, 0, 429, 429, 429});
    shared.finish();
    CHECK(shared.asked(weir::verb::spend) == 9);  // the fifth is refused by the first
}

TEST_CASE("a list with a hole in it cannot be made", "[http][limits]")
{
    CHECK_THROWS_AS(weir::http::limits({nullptr}), std::invalid_argument);
}
