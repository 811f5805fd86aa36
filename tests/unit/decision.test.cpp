// SPDX-License-Identifier: BSL-1.0

#include "weir/decision.hpp"

#include "catch.hpp"

#include <chrono>
#include <optional>
#include <vector>

using namespace std::chrono_literals;

namespace {

weir::decision admitted(std::uint64_t left)
{
    return {.verdict = weir::verdict::admitted, .limit = 10, .left = left};
}

weir::decision refused(std::optional<weir::duration> wait, std::uint64_t left = 0)
{
    return {.limit = 10, .left = left, .retry_after = wait};
}

}  // namespace

TEST_CASE("a decision that nobody filled in refuses", "[decision]")
{
    CHECK(!weir::decision{});
    CHECK(admitted(0));
}

TEST_CASE("the tighter of two is the refusal, then the longer wait, then the less left",
          "[decision]")
{
    const std::vector<weir::decision> from_tight_to_loose{
        refused(std::nullopt, 9), refused(60s, 8), refused(1s, 2),
        refused(1s, 3),           admitted(0),     admitted(5)};
    for (std::size_t a = 0; a < from_tight_to_loose.size(); ++a)
        for (std::size_t b = 0; b < from_tight_to_loose.size(); ++b)
            CHECK(weir::tighter(from_tight_to_loose[a], from_tight_to_loose[b]) == (a < b));
}

TEST_CASE("both is admitted only if both were, with the figures of the tighter", "[decision]")
{
    CHECK(weir::both(admitted(5), admitted(2)).left == 2);
    CHECK(weir::both(admitted(2), admitted(5)).left == 2);
    CHECK(!weir::both(admitted(0), refused(1s, 3)));
    CHECK(!weir::both(refused(1s, 3), admitted(0)));
    CHECK(weir::both(refused(1s), refused(std::nullopt)).retry_after == std::nullopt);
    CHECK(weir::both(refused(2s), refused(1s)).retry_after == 2s);
}

TEST_CASE("on a tie the first of two is told", "[decision]")
{
    auto first = admitted(3), second = admitted(3);
    first.limiter = "first", second.limiter = "second";
    CHECK(weir::both(first, second).limiter == "first");
    CHECK(weir::both(second, first).limiter == "second");
}

TEST_CASE("both rests on the weaker basis, whoever's figures are told", "[decision]")
{
    auto firm = admitted(1), weak = admitted(9);
    weak.basis = weir::basis::estimated;
    CHECK(weir::both(firm, weak).left == 1);
    CHECK(weir::both(firm, weak).basis == weir::basis::estimated);
    CHECK(weir::both(weak, firm).basis == weir::basis::estimated);
    CHECK(weir::basis::counted < weir::basis::leased);
    CHECK(weir::basis::leased < weir::basis::remembered);
    CHECK(weir::basis::remembered < weir::basis::estimated);
    CHECK(weir::basis::estimated < weir::basis::local);
    CHECK(weir::basis::local < weir::basis::store_unavailable);
}

TEST_CASE("and_then does not ask the next limiter after a refusal", "[decision]")
{
    int        asked = 0;
    const auto next  = [&] { return ++asked, admitted(4); };
    const auto first = refused(1s, 7);
    CHECK(first.and_then(next) == first);
    CHECK(asked == 0);
    CHECK(admitted(5).and_then(next).left == 4);
    CHECK(asked == 1);
    CHECK(!admitted(5).and_then([] { return refused(3s); }));
}

TEST_CASE("and_then is the same at compile time", "[decision]")
{
    constexpr weir::decision yes{.verdict = weir::verdict::admitted};
    static_assert(!yes.and_then([] { return weir::decision{}; }));
    static_assert(yes.and_then([] { return weir::decision{.verdict = weir::verdict::admitted}; }));
    CHECK(yes);
}
