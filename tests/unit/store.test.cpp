// SPDX-License-Identifier: BSL-1.0

#include "weir/store.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/random.hpp"

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"

#include <chrono>
#include <cstdint>

using namespace std::chrono_literals;
using reference::chance;
using reference::random_number;

namespace {

/// A merged ask of random callers to a random state, and each refused one of it told alone. The
/// number of those told, or -1 if one is told otherwise.
template <class Policy>
int told_alone_as_merged(reference::generator& random)
{
    const auto units = [&](std::uint64_t most) {
        return random_number<std::uint64_t>(random, 1, most);
    };
    const auto limit = Policy{.limit = units(9), .window = 1s};
    auto       at    = reference::t(0);
    auto       state = typename Policy::state{};
    for (auto charges = units(6); charges > 0; --charges) {
        at += weir::duration(random_number<std::int64_t>(random, -300'000'000, 900'000'000));
        limit.charge(state, units(6), at);
    }
    if (chance(random, 20)) state = {};
    const weir::ask<Policy> merged{.limit = limit, .cost = units(11), .times = units(40)};
    weir::reply<Policy>     said{.basis = chance(random, 10) ? weir::basis::store_unavailable
                                                             : weir::basis::counted};
    said.granted = limit.spend(state, merged.cost, merged.times, at);
    said.after   = state;
    said.at      = limit.judged_at(state, at);
    weir::merged_callers callers(merged, said, "ip", at);
    for (auto granted = said.granted; granted > 0; --granted) (void)callers.next();

    const auto refused = merged.times - said.granted;
    auto       alone   = said;
    auto       own     = merged;
    alone.granted      = 0;
    own.times          = 1;
    if (said.granted > 0 && said.basis == weir::basis::store_unavailable) return 0;
    for (alone.ahead = 0; alone.ahead < refused; ++alone.ahead)
        if (weir::told(own, alone, "ip", at) != callers.next()) return -1;
    return static_cast<int>(refused);
}

}  // namespace

TEST_CASE("a refused caller with others ahead is told what merged callers are told in turn",
          "[store]")
{
    reference::generator random(60'000'000);
    int                  fixed = 0, sliding = 0, bucket = 0;
    for (int i = 0; i < 3'000; ++i) {
        const int told[] = {told_alone_as_merged<weir::fixed_window>(random),
                            told_alone_as_merged<weir::sliding_window>(random),
                            told_alone_as_merged<weir::gcra>(random)};
        for (const auto one : told) REQUIRE(one >= 0);
        fixed += told[0], sliding += told[1], bucket += told[2];
    }
    CHECK(fixed > 10'000);
    CHECK(sliding > 10'000);
    CHECK(bucket > 10'000);
}

TEST_CASE("those who are ahead make a refused caller wait longer, and a look wait for nobody",
          "[store]")
{
    constexpr weir::fixed_window    limit{.limit = 2, .window = 1min};
    weir::ask<weir::fixed_window>   question{.limit = limit};
    weir::reply<weir::fixed_window> said{.after = {reference::t(0), 2}, .at = reference::t(1'000)};
    CHECK(weir::told(question, said, "ip", reference::t(1'000)).retry_after == 59s);
    said.ahead = 1;
    CHECK(weir::told(question, said, "ip", reference::t(1'000)).retry_after == 59s);
    said.ahead = 2;
    CHECK(weir::told(question, said, "ip", reference::t(1'000)).retry_after == 119s);
    question.verb = weir::verb::peek;
    CHECK(weir::told(question, said, "ip", reference::t(1'000)).retry_after == 59s);
}
