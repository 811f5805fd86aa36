// SPDX-License-Identifier: BSL-1.0

// Limiters on a store that has a clock of its own, as shared stores do.

#include "weir/limiter.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/store_suite.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using reference::own_clock_store;
using reference::t;
using completion = own_clock_store::completion;

namespace {

template <class Limiter>
struct with_an_instant {
    static constexpr bool admits = requires(const Limiter& limiter, weir::instant at)
    {
        limiter.admit("a", at);
    };
    static constexpr bool admits_units = requires(const Limiter& limiter, weir::instant at)
    {
        limiter.admit("a", {.cost = 2}, at);
    };
    static constexpr bool admits_many =
        requires(const Limiter& limiter, std::span<const weir::subject> who,
                 std::span<weir::decision> made, weir::instant at)
    {
        limiter.admit_many(who, made, at);
    };
    static constexpr bool peeks = requires(const Limiter& limiter, weir::instant at)
    {
        limiter.peek("a", {}, at);
    };
    static constexpr bool charges = requires(const Limiter& limiter, weir::instant at)
    {
        limiter.charge("a", {}, at);
    };
    static constexpr bool gives_back =
        requires(const Limiter& limiter, const weir::decision& made, weir::instant at)
    {
        limiter.give_back("a", made, at);
    };
    static constexpr bool forgets = requires(const Limiter& limiter, weir::instant at)
    {
        limiter.forget("a", at);
    };
    static constexpr bool reserves = requires(const Limiter& limiter, weir::instant at)
    {
        limiter.reserve("a", {}, at);
    };
    static constexpr bool settles =
        requires(weir::reservation<Limiter> & spending, weir::instant at)
    {
        spending.settle(1, at);
    };
};

template <class Limiter>
concept takes_batches = requires(const Limiter& limiter, std::span<const weir::subject> who,
                                 std::span<weir::decision> made)
{
    limiter.admit_many(who, made);
};

struct tally {
    std::atomic<int>* told;
    void              decided(const weir::decision&) noexcept { ++*told; }
};

/// What the store is asked to keep until it has an answer.
struct measuring_store : own_clock_store {
    using own_clock_store::own_clock_store;

    template <weir::policy Policy, class Done>
    void answer_then(weir::memory_counters<Policy>* limiter, const weir::ask<Policy>& question,
                     Done done)
    {
        kept = sizeof(Done);
        own_clock_store::answer_then(limiter, question, std::move(done));
    }

    std::size_t kept = 0;
};

constexpr weir::fixed_window two_a_minute{.limit = 2, .window = 1min};

}  // namespace

TEST_CASE("an instant compiles for a store on the caller's clock, and for no other", "[limiter]")
{
    using theirs = with_an_instant<weir::limiter<weir::fixed_window, weir::memory_store>>;
    using own    = with_an_instant<weir::limiter<weir::fixed_window, own_clock_store>>;
    static_assert(theirs::admits && theirs::admits_units && theirs::admits_many && theirs::peeks);
    static_assert(theirs::charges && theirs::gives_back && theirs::forgets);
    static_assert(theirs::reserves && theirs::settles);
    static_assert(!own::admits && !own::admits_units && !own::admits_many && !own::peeks);
    static_assert(!own::charges && !own::gives_back && !own::forgets);
    static_assert(!own::reserves && !own::settles);
    static_assert(takes_batches<weir::limiter<weir::gcra, weir::memory_store>>);
    static_assert(!takes_batches<weir::limiter<weir::gcra, own_clock_store>>);
    SUCCEED("checked by the compiler");
}

TEMPLATE_TEST_CASE("a store on its own clock shows the behaviour of every store", "[limiter]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    own_clock_store counters(t(0));
    weir::testing::store_suite<TestType>(counters, [](bool held, std::string_view claim) {
        INFO(claim);
        CHECK(held);
    });
}

TEST_CASE("the store's clock decides, whatever the caller's shows", "[limiter]")
{
    own_clock_store     counters(t(45'000));
    const weir::limiter limiter("ip", two_a_minute, counters);
    const auto          made = limiter.admit("client");
    CHECK(made.at == t(45'000));
    CHECK(made.reset_after == 15s);
    CHECK(limiter.admit("client"));
    CHECK(limiter.admit("client").retry_after == 15s);
    counters.advance(15s - 1ns);
    CHECK(!limiter.admit("client"));
    counters.advance(1ns);
    CHECK(limiter.admit("client").at == t(60'000));
}

TEST_CASE("waits count from when the store was asked, not from what it judged at", "[limiter]")
{
    own_clock_store     counters(t(60'000));
    const weir::limiter limiter("ip", two_a_minute, counters);
    CHECK(limiter.admit("client", {.cost = 2}));
    counters.advance(-1s);
    const auto refused = limiter.admit("client");
    CHECK(refused.at == t(60'000));
    CHECK(refused.retry_after == 61s);
}

TEST_CASE("all questions work without an instant", "[limiter]")
{
    own_clock_store counters(t(0));
    weir::limiter   limiter("ip", weir::fixed_window{.limit = 10, .window = 1min}, counters);
    const auto      made = limiter.admit("client", {.cost = 4});
    CHECK(limiter.peek("client").left == 6);
    limiter.charge("client", {.cost = 5});
    CHECK(limiter.peek("client").left == 1);
    limiter.give_back("client", made);
    CHECK(limiter.peek("client").left == 5);
    CHECK(!limiter.peek("client", {.cost = 6}));
    CHECK(limiter.set_limit({.limit = 20, .window = 1min}));
    CHECK(limiter.peek("client").left == 15);
    CHECK(limiter.forget("client"));
    CHECK(limiter.peek("client").left == 20);
    counters.advance(1min);
    limiter.give_back("client", made);
    CHECK(limiter.admit(limiter.digest("client")).left == 19);
}

TEST_CASE("a cost of 0 is asked as a look", "[limiter]")
{
    own_clock_store     counters(t(0));
    const weir::limiter limiter("ip", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    CHECK(limiter.admit("client", {.cost = 0}));
    limiter.admit_then("client", {.cost = 0}, [](const weir::decision& made) { CHECK(made); });
    CHECK(counters.asked(weir::verb::peek) == 2);
    CHECK(counters.asked() == 2);
}

TEMPLATE_TEST_CASE("what can never fit is refused without the store, as if nothing were counted",
                   "[limiter]", weir::fixed_window, weir::sliding_window, weir::gcra)
{
    own_clock_store     counters(t(0));
    const weir::limiter limiter("ip", TestType{.limit = 3, .window = 1min}, counters);
    const weir::limiter closed("closed", TestType{.limit = 0, .window = 1min}, counters);
    CHECK(limiter.admit("client", {.cost = 2}));
    REQUIRE(counters.asked() == 1);

    const auto before = weir::now();
    const auto told   = limiter.admit("client", {.cost = 4});
    CHECK(!told);
    CHECK(told.basis == weir::basis::counted);
    CHECK(told.retry_after == std::nullopt);
    CHECK(told.left == 3);
    CHECK(told.cost == 4);
    CHECK(told.reset_after == 0s);
    CHECK(told.at >= before);
    CHECK(told.at <= weir::now());
    CHECK(limiter.admit("client", {.cost = ~std::uint64_t{0}}).retry_after == std::nullopt);
    CHECK(!closed.admit("client"));
    CHECK(!closed.admit("client", {.cost = 0}));
    CHECK(!closed.reserve("client", {.estimate = 1}));
    bool called = false;
    limiter.admit_then("client", {.cost = 4},
                       [&](const weir::decision& made) { called = !made && !made.retry_after; });
    CHECK(called);
    CHECK(counters.asked() == 1);
}

TEST_CASE("admit_then of a store in the process calls back at once, here, with what admit says",
          "[limiter]")
{
    std::atomic<int>              told{0};
    weir::memory_store            counters;
    const weir::limiter           limiter("ip", two_a_minute, counters, {}, tally{&told});
    std::optional<weir::decision> made;
    const auto                    here = std::this_thread::get_id();
    limiter.admit_then("client", [&, only = std::make_unique<int>(1)](const weir::decision& one) {
        if (std::this_thread::get_id() == here) made = one;
    });
    REQUIRE(made);
    CHECK(made->left == 1);
    CHECK(told == 1);
    limiter.admit_then("client", {.cost = 2}, [&](const weir::decision& one) { made = one; });
    CHECK(!*made);
    CHECK(told == 2);
}

TEST_CASE("admit_then calls back once, when and where the store has the answer", "[limiter]")
{
    std::atomic<int>              told{0}, calls{0};
    own_clock_store               counters(t(0), completion::on_a_thread);
    const weir::limiter           limiter("ip", two_a_minute, counters, {}, tally{&told});
    std::optional<weir::decision> made;
    bool                          here   = true;
    const auto                    caller = std::this_thread::get_id();
    counters.hold();
    limiter.admit_then("client", {.cost = 2},
                       [&, only = std::make_unique<int>(1)](const weir::decision& one) {
                           made = one;
                           here = std::this_thread::get_id() == caller;
                           calls += *only;
                       });
    CHECK(calls == 0);
    CHECK(told == 0);
    counters.finish();
    CHECK(calls == 1);
    CHECK(told == 1);
    CHECK(!here);
    REQUIRE(made);
    CHECK(*made);
    CHECK(made->cost == 2);
    CHECK(made->left == 0);
    CHECK(made->limiter == "ip");
    CHECK(made->at == t(0));
}

TEST_CASE("the callback of a store may run before admit_then returns", "[limiter]")
{
    own_clock_store     counters(t(0), completion::at_once);
    const weir::limiter limiter("ip", two_a_minute, counters);
    bool                called = false;
    limiter.admit_then("client", [&](const weir::decision& made) { called = bool(made); });
    CHECK(called);
}

TEST_CASE("the subject of admit_then may be gone once it returned", "[limiter]")
{
    own_clock_store     counters(t(0), completion::on_a_thread);
    const weir::limiter limiter("ip", two_a_minute, counters);
    std::string         name = "somebody with a long name";
    counters.hold();
    limiter.admit_then(name, [](const weir::decision&) {});
    name.assign(name.size(), 'x');
    counters.finish();
    CHECK(limiter.peek("somebody with a long name").left == 1);
    CHECK(limiter.peek(name).left == 2);
}

TEST_CASE("an answer that comes later is told under the limit that was asked with", "[limiter]")
{
    own_clock_store counters(t(0), completion::on_a_thread);
    weir::limiter   limiter("ip", weir::fixed_window{.limit = 2, .window = 1min}, counters);
    counters.hold();
    std::optional<weir::decision> made;
    limiter.admit_then("client", [&](const weir::decision& one) { made = one; });
    CHECK(limiter.set_limit({.limit = 9, .window = 1min}));
    counters.finish();
    REQUIRE(made);
    CHECK(made->limit == 2);
    CHECK(made->left == 1);
}

TEST_CASE("a store keeps at most eight words for a callback of one", "[limiter]")
{
    measuring_store     counters(t(0));
    const weir::limiter limiter("ip", weir::gcra{.limit = 2}, counters);
    int                 calls = 0;
    limiter.admit_then("client", [&calls](const weir::decision&) { ++calls; });
    CHECK(calls == 1);
    CHECK(counters.kept <= 8 * sizeof(void*));
}
