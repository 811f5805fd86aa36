// SPDX-License-Identifier: BSL-1.0

#include "weir/testing/store_suite.hpp"

#include "catch.hpp"
#include "reference/slow_store.hpp"

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

using weir::fixed_window;

namespace {

using asked  = weir::ask<fixed_window>;
using failed = std::set<std::string, std::less<>>;

/// The slow store, with one fault: what it does to a question before it hears it, or to an answer.
struct faulty_store {
    template <weir::policy Policy>
    using enrolment = reference::slow_store::counters<Policy>*;

    static constexpr bool on_callers_clock = true;

    void (*mishear)(asked&)                      = [](asked&) {};
    void (*misspeak)(weir::reply<fixed_window>&) = [](weir::reply<fixed_window>&) {};
    bool                  one_for_all            = false;
    reference::slow_store honest                 = {};

    auto enrol(std::string_view name, const fixed_window& limit, weir::outage_rule rule)
    {
        return honest.enrol(one_for_all ? "all" : name, limit, rule);
    }
    template <class Counters>
    weir::key digest(Counters* limiter, const weir::subject& who) const noexcept
    {
        return honest.digest(limiter, who);
    }
    template <class Counters>
    bool holds(Counters*, const fixed_window&) const noexcept
    {
        return true;
    }
    template <class Counters>
    weir::reply<fixed_window> answer(Counters* limiter, asked question, weir::instant at)
    {
        mishear(question);
        auto said = honest.answer(limiter, question, at);
        misspeak(said);
        return said;
    }
    weir::instant now() const noexcept { return weir::now(); }
};

failed claims_that_fail(faulty_store&& store)
{
    failed claims;
    weir::testing::store_suite<fixed_window>(store, [&](bool held, std::string_view claim) {
        if (!held) claims.emplace(claim);
    });
    return claims;
}

template <class Policy>
failed claims_that_fail_honestly()
{
    reference::slow_store store;
    failed                claims;
    int                   reported = 0;
    weir::testing::store_suite<Policy>(store, [&](bool held, std::string_view claim) {
        ++reported;
        if (!held) claims.emplace(claim);
    });
    CHECK(reported > 30);
    return claims;
}

}  // namespace

TEST_CASE("the slow reference store shows what every store must", "[store_suite]")
{
    CHECK(claims_that_fail_honestly<weir::fixed_window>() == failed{});
    CHECK(claims_that_fail_honestly<weir::sliding_window>() == failed{});
    CHECK(claims_that_fail_honestly<weir::gcra>() == failed{});
}

TEST_CASE("a store that counts what it refuses is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) {
        if (question.verb == weir::verb::spend && question.cost == 7)
            question.verb = weir::verb::charge;
    }});
    CHECK(claims.contains("a refusal changes no count"));
}

TEST_CASE("a store that hears only one of the merged callers is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) { question.times = 1; }});
    CHECK(claims.contains("as many of them are granted as fit"));
    CHECK(claims.contains("callers merged into one ask are told what they would be told in turn"));
}

TEST_CASE("a store that takes on a look is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) {
        if (question.verb == weir::verb::peek) question.verb = weir::verb::charge;
    }});
    CHECK(claims.contains("a look takes nothing"));
}

TEST_CASE("a store that judges charges is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) {
        if (question.verb == weir::verb::charge) question.verb = weir::verb::spend;
    }});
    CHECK(claims.contains("a charge may leave a debt"));
}

TEST_CASE("a store that gives back what lapsed is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) {
        if (question.verb == weir::verb::give_back) question.verb = weir::verb::forget;
    }});
    CHECK(claims.contains("units that lapsed are not"));
    CHECK(claims.contains("nothing is put back at or after its lapse"));
}

TEST_CASE("a store that forgets to forget is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) {
        if (question.verb == weir::verb::forget) question.verb = weir::verb::peek;
    }});
    CHECK(claims == failed{"a forgotten key is untouched"});
}

TEST_CASE("a store that keeps the limit of enrolment is found out", "[store_suite]")
{
    const auto claims = claims_that_fail({.mishear = [](asked& question) {
        if (question.limit.limit > 10 && question.limit.limit <= 20) question.limit.limit = 10;
    }});
    CHECK(claims.contains("a raised limit applies at once to what is counted"));
}

TEST_CASE("a store whose limiters share their counters is found out", "[store_suite]")
{
    CHECK(claims_that_fail({.one_for_all = true}).contains("another name has counters of its own"));
}

TEST_CASE("a store that answers of another state than it holds is found out", "[store_suite]")
{
    const auto claims =
        claims_that_fail({.misspeak = [](weir::reply<fixed_window>& said) { said.after = {}; }});
    CHECK(claims.contains("units are taken"));
    CHECK(claims.contains("2000 random asks are told what the policy's own arithmetic says"));
}
