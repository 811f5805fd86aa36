// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/trip.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "../../reference/random.hpp"
#include "catch.hpp"

using weir::verb;
using weir::remote::manner;
using weir::remote::row;
using weir::remote::seat;
using weir::remote::seats;
using weir::remote::trip;

namespace {

const manner asks{.statement = "ask", .policy = "policy"};
const manner others{.statement = "ask", .policy = "another policy"};

row spend(std::uint64_t who, std::int64_t cost = 1, std::int64_t times = 1)
{
    return {
        .manner = &asks, .who = {who, who}, .most = 10, .length = 60, .cost = cost, .times = times};
}

row act(verb what, std::uint64_t who)
{
    auto made = spend(who);
    made.act  = what;
    return made;
}

/// Seats in the order of their coming.
struct queue {
    seat& add(const row& asked)
    {
        auto& one = all.emplace_back();
        one.asked = asked;
        one.at    = seat::stage::waiting;
        waiting.push_back(one);
        return one;
    }

    /// Where the seats are that still wait, as they were added.
    std::vector<std::size_t> left() const
    {
        std::vector<std::size_t> places;
        for (auto* one = waiting.first(); one != nullptr; one = one->next)
            for (std::size_t n = 0; n < all.size(); ++n)
                if (&all[n] == one) places.push_back(n);
        return places;
    }

    std::deque<seat> all;
    seats            waiting;
};

std::vector<seat*> in(const seats& list)
{
    std::vector<seat*> all;
    for (auto* one = list.first(); one != nullptr; one = one->next) all.push_back(one);
    return all;
}

}  // namespace

TEST_CASE("nobody waits, and there is no trip", "[trip]")
{
    trip  made;
    queue nobody;
    CHECK(!made.fill(nobody.waiting));
    CHECK(made.carries == trip::kind::none);
    CHECK(made.parts().empty());
}

TEST_CASE("callers of one key and cost are one row, and each knows who comes before it", "[trip]")
{
    trip  made;
    queue callers;
    auto& first  = callers.add(spend(1));
    auto& second = callers.add(spend(1, 1, 4));
    auto& third  = callers.add(spend(1));
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.carries == trip::kind::ask);
    CHECK(made.manner() == &asks);
    REQUIRE(made.parts().size() == 1);
    CHECK(made.parts()[0].asked.times == 6);
    CHECK(in(made.parts()[0].seats) == std::vector<seat*>{&first, &second, &third});
    CHECK(first.place == 0);
    CHECK(second.place == 1);
    CHECK(third.place == 5);
    CHECK(callers.waiting.empty());
    CHECK(third.at == seat::stage::sent);
}

TEST_CASE("what one statement cannot spend together comes with a later one, in turn", "[trip]")
{
    trip  made;
    queue callers;
    callers.add(spend(1, 1));
    callers.add(spend(1, 2));
    callers.add(act(verb::charge, 1));
    callers.add(act(verb::give_back, 1));
    callers.add(act(verb::charge, 1));
    auto longer = spend(1), larger = spend(1);
    longer.length = 61, larger.most = 11;
    callers.add(longer);
    callers.add(larger);
    for (std::size_t trips = 0; trips < 7; ++trips) {
        INFO("trip " << trips);
        REQUIRE(made.fill(callers.waiting));
        REQUIRE(made.parts().size() == 1);
        CHECK(in(made.parts()[0].seats) == std::vector<seat*>{&callers.all[trips]});
        CHECK(made.parts()[0].asked.times == 1);
    }
    CHECK(!made.fill(callers.waiting));
}

TEST_CASE("other keys come along past a key that has to wait", "[trip]")
{
    trip  made;
    queue callers;
    callers.add(act(verb::charge, 1));
    callers.add(act(verb::charge, 1));
    callers.add(act(verb::give_back, 2));
    callers.add(spend(3));
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.parts().size() == 3);
    CHECK(callers.left() == std::vector<std::size_t>{1});
}

TEST_CASE("who is asked in another manner is not taken along", "[trip]")
{
    trip  made;
    queue callers;
    callers.add(spend(1));
    auto foreign   = spend(2);
    foreign.manner = &others;
    callers.add(foreign);
    callers.add(spend(3));
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.parts().size() == 2);
    CHECK(callers.left() == std::vector<std::size_t>{1});
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.manner() == &others);
    CHECK(made.parts().size() == 1);
}

TEST_CASE("a trip has 256 rows at most, and callers of those come along whoever waits", "[trip]")
{
    trip  made;
    queue callers;
    for (std::uint64_t n = 0; n < 300; ++n) callers.add(spend(n));
    auto& late = callers.add(spend(255));
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.parts().size() == trip::most_rows);
    CHECK(late.at == seat::stage::sent);
    CHECK(callers.left().size() == 44);
    CHECK(callers.left().front() == 256);
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.parts().size() == 44);
    CHECK(!made.fill(callers.waiting));
}

TEST_CASE("keys that meet in the table of a trip are rows of their own", "[trip]")
{
    trip  made;
    queue callers;
    for (std::uint64_t n = 0; n < 256; ++n) {
        auto one = spend(1);
        one.who = {512 * (n % 128), n};  // one bucket for all, and high halves that are twice there
        callers.add(one);
        callers.add(one);
    }
    REQUIRE(made.fill(callers.waiting));
    REQUIRE(made.parts().size() == 256);
    for (const auto& part : made.parts()) CHECK(part.asked.times == 2);
}

TEST_CASE("a seat that must be alone shares its statement with nobody", "[trip]")
{
    trip  made;
    queue callers;
    callers.add(spend(1)).alone = true;
    callers.add(spend(1));
    callers.add(spend(2)).alone = true;
    callers.add(spend(3));
    const auto carried = [&] {
        REQUIRE(made.fill(callers.waiting));
        std::size_t count = 0;
        for (const auto& part : made.parts()) count += in(part.seats).size();
        return count;
    };
    CHECK(carried() == 1);
    CHECK(callers.left() == std::vector<std::size_t>{1, 2, 3});
    CHECK(carried() == 2);
    CHECK(callers.left() == std::vector<std::size_t>{2});
    CHECK(carried() == 1);
}

TEST_CASE("a set is a trip of its own, in the order of keys, and equal keys in its own order",
          "[trip]")
{
    trip               made;
    queue              callers;
    std::deque<seat>   slots(4);
    std::vector<seat*> set;
    for (std::size_t n = 0; n < 4; ++n) {
        slots[n].asked = spend(n == 1 ? 9 : n == 3 ? 1 : 5, static_cast<std::int64_t>(n) + 1);
        set.push_back(&slots[n]);
    }
    auto& before = callers.add(spend(5));
    auto& head   = callers.add({});
    head.set     = set;
    callers.add(spend(7));

    REQUIRE(made.fill(callers.waiting));
    CHECK(before.at == seat::stage::sent);
    CHECK(made.parts().size() == 2);  // the set neither comes along nor holds others up
    REQUIRE(made.fill(callers.waiting));
    CHECK(made.carries == trip::kind::set);
    CHECK(made.set == &head);
    REQUIRE(made.parts().size() == 4);
    std::vector<std::int64_t> costs;
    for (std::size_t n = 0; n < 4; ++n) {
        CHECK(made.parts()[n].asked.who == slots[n].asked.who);  // as they were asked for
        CHECK(made.parts()[n].seats.empty());
        costs.push_back(made.sorted(n).asked.cost);
    }
    CHECK(costs == std::vector<std::int64_t>{4, 1, 3, 2});
    made.clear();
    CHECK(made.set == nullptr);
    CHECK(made.carries == trip::kind::none);
}

TEST_CASE("10000 random queues are carried whole: rows sorted and once each, callers in turn",
          "[trip]")
{
    reference::generator random(20'260'714);
    trip                 made;
    for (std::uint64_t round = 0; round < reference::steps(10'000); ++round) {
        queue      callers;
        const auto keys = 1 + random() % 300;
        for (auto n = random() % 400; n > 0; --n) {
            const auto who  = random() % keys;
            const auto cost = 1 + static_cast<std::int64_t>(random() % 2);
            const auto some = 1 + static_cast<std::int64_t>(random() % 3);
            auto       one =
                reference::chance(random, 90) ? spend(who, cost, some) : act(verb::charge, who);
            one.manner             = reference::chance(random, 90) ? &asks : &others;
            callers.add(one).alone = reference::chance(random, 2);
        }
        std::size_t carried = 0;
        bool        right   = true;
        while (auto* const head = callers.waiting.first()) {
            right &= made.fill(callers.waiting) && !made.parts().empty();
            right &= made.parts().size() <= trip::most_rows;
            right &= head->at == seat::stage::sent;
            for (std::size_t n = 1; n < made.parts().size(); ++n)
                right &= made.sorted(n - 1).asked.who < made.sorted(n).asked.who;
            for (const auto& part : made.parts()) {
                std::int64_t before = 0;
                for (const auto* one : in(part.seats)) {
                    right &= one->asked.who == part.asked.who && one->place == before;
                    right &= one == part.seats.first() || one->asked.merges_with(part.asked);
                    right &= one->asked.manner == made.manner();
                    before += one->asked.times;
                    ++carried;
                }
                right &= before == part.asked.times && before > 0;
            }
        }
        INFO("round " << round);
        REQUIRE(right);
        REQUIRE(carried == callers.all.size());
    }
}
