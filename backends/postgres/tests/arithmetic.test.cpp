// SPDX-License-Identifier: BSL-1.0

// The arithmetic in SQL against the policies themselves, bit for bit.

#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../../../tests/reference/random.hpp"
#include "catch.hpp"
#include "in_sql.hpp"
#include "session.hpp"

using namespace std::chrono_literals;
using reference::chance;
using reference::random_number;
using weir::duration;
using weir::instant;
using weir::verb;

namespace {

constexpr duration century     = std::chrono::hours(24) * 365 * 100;
constexpr instant  latest      = instant(std::chrono::hours(24) * 365 * 180);
constexpr auto     most        = in_sql::most_counted;
constexpr auto     batch_size  = std::size_t{5'000};
constexpr unsigned asks_a_life = 40;  // of one counter

/// Small numbers as often as large ones: in each order of magnitude alike.
std::uint64_t any_size(reference::generator& random, std::uint64_t least, std::uint64_t largest)
{
    const auto bits  = random_number<unsigned>(random, 1, 64);
    const auto below = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    return least + random_number<std::uint64_t>(random, 0, std::min(below, largest - least));
}

std::uint64_t any_limit(reference::generator& random, std::uint64_t largest)
{
    if (chance(random, 10)) return 0;
    return chance(random, 5) ? largest : any_size(random, 0, largest);
}

duration any_window(reference::generator& random, duration tick)
{
    if (chance(random, 5)) return century / tick * tick;
    const auto most_ticks = static_cast<std::uint64_t>(century / tick);
    return tick * static_cast<std::int64_t>(any_size(random, 1, most_ticks));
}

/// A limit of the policy on windows of that length, as an operator may set it at any time.
template <weir::policy Policy>
Policy any_of(reference::generator& random, duration window)
{
    if constexpr (std::same_as<Policy, weir::gcra>) {
        auto made = weir::gcra{.limit = any_limit(random, most), .window = window, .burst = 1};
        if (made.interval.count() == 0) return made;
        const auto largest = (std::int64_t{1} << 61) / made.interval.count();
        if (largest == 0) return any_of<Policy>(random, window);
        made.burst = any_size(random, 1, static_cast<std::uint64_t>(largest));
        return made;
    } else if constexpr (std::same_as<Policy, weir::sliding_window>) {
        const auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) /
                             static_cast<std::uint64_t>(window / Policy::tick);
        return {.limit = any_limit(random, std::min(largest, most)), .window = window};
    } else {
        return {.limit = any_limit(random, most), .window = window};
    }
}

template <weir::policy Policy>
Policy any_of(reference::generator& random)
{
    return any_of<Policy>(
        random, any_window(random, std::same_as<Policy, weir::sliding_window> ? 1us : 1ns));
}

/// How far ahead of an ask a state is believed.
duration furthest(const auto& window) { return std::max<duration>(window.window, 1h); }
duration furthest(const weir::gcra& limit)
{
    return limit.interval * static_cast<std::int64_t>(limit.burst) + 1h;
}

/// An instant that matters to the state: an edge of its windows, what it recovers at, or near.
template <weir::policy Policy>
instant landmark(reference::generator& random, const Policy& limit,
                 const typename Policy::state& state, instant at)
{
    const auto begun = instant(duration(in_sql::words_of(state)[0]));
    switch (random() % 6) {
    case 0:
        return begun;
    case 1:
        return begun > latest - limit.window ? begun : begun + limit.window;
    case 2:
        return weir::window_end(at, limit.window);
    case 3:
        return weir::window_start(at, limit.window);
    case 4:
        return begun - furthest(limit);
    default:
        return at;
    }
}

template <weir::policy Policy>
instant moved(reference::generator& random, const Policy& limit,
              const typename Policy::state& state, instant at)
{
    const auto dice = random() % 100;
    const auto step = [&](duration largest) {
        return duration(static_cast<std::int64_t>(
            any_size(random, 0, static_cast<std::uint64_t>(largest.count()))));
    };
    if (dice < 20) return at;
    if (dice < 45) at = landmark(random, limit, state, at) + duration(random_number(random, -2, 2));
    else if (dice < 65) at += step(limit.window / 3);
    else if (dice < 80) at += step(std::min(limit.window, latest - at));
    else if (dice < 85) at += std::min(2 * (limit.window / 2), latest - at) + step(1h);
    else if (dice < 95) at -= step(std::max<duration>(limit.window, 2h));
    else at = instant(step(latest.time_since_epoch()));
    return std::clamp(at, instant(), latest);
}

template <weir::policy Policy>
weir::ask<Policy> any_ask(reference::generator& random, const Policy& limit,
                          const typename Policy::state& state, instant at)
{
    weir::ask<Policy> question{.limit = limit};
    question.cost   = chance(random, 50) ? std::min<std::uint64_t>(1, limit.capacity())
                                         : any_size(random, 0, limit.capacity());
    question.times  = chance(random, 60) ? 1 : any_size(random, 1, most);
    const auto dice = random() % 100;
    if (dice >= 55 && dice < 75) {
        question.verb = verb::charge;
        question.cost = any_size(random, 0, most);
    } else if (dice >= 75) {
        question.verb = verb::give_back;
        question.cost = any_size(random, 0, most);
        if (!chance(random, 10)) {
            question.lapses = landmark(random, limit, state, at);
            if (chance(random, 20)) question.lapses += duration(random_number(random, -1, 1));
        }
    }
    return question;
}

/// One evaluation, and what is due to come out of it.
struct probe {
    in_sql::six   numbers = {};
    in_sql::words before  = {};
    instant       at      = {};
    in_sql::words after   = {};
    std::uint64_t granted = 0;
    instant       whole   = {};  ///< When the policy says that the counter has recovered.
};

/// Lives of counters, one after the other, until there are enough asks.
template <weir::policy Policy>
std::vector<probe> probes(reference::generator& random, std::uint64_t count)
{
    std::vector<probe>     made;
    Policy                 limit = {};
    typename Policy::state state = {};
    instant                at    = {};
    while (made.size() < count) {
        if (made.size() % asks_a_life == 0) {
            limit = any_of<Policy>(random);
            state = {};
            at = instant(duration(random_number(random, std::int64_t{0}, in_sql::ticks(latest))));
        } else if (chance(random, 6)) {
            limit = any_of<Policy>(random, limit.window);
        }
        at                  = moved(random, limit, state, at);
        const auto question = any_ask(random, limit, state, at);
        probe      next{in_sql::numbers_of(question), in_sql::words_of(state), at};
        next.granted = in_sql::step(question, state, at);
        next.after   = in_sql::words_of(state);
        next.whole   = limit.recovered_at(state);
        made.push_back(next);
    }
    return made;
}

/// The parameters of one query over the probes: a list for each argument of the function.
std::vector<std::string> columns(const probe* first, const probe* last)
{
    std::vector<std::vector<std::int64_t>> lists(10);
    for (; first != last; ++first) {
        const auto& [verb, a, b, cost, times, lapses] = first->numbers;
        const auto& [one, two, three]                 = first->before;
        std::size_t column                            = 0;
        for (const auto value :
             {verb, one, two, three, a, b, cost, times, lapses, in_sql::ticks(first->at)})
            lists[column++].push_back(value);
    }
    std::vector<std::string> texts;
    for (const auto& list : lists) texts.push_back(scratch::array_of(list));
    return texts;
}

void must_be(const probe& due, const scratch::answer& said, std::size_t row)
{
    const auto value = [&](std::size_t column) { return said.number(row, column); };
    CAPTURE(due.numbers, due.before, in_sql::ticks(due.at));
    REQUIRE(in_sql::words{value(0), value(1), value(2)} == due.after);
    REQUIRE(value(4) == in_sql::held(due.granted));
    // Of a counter that has recovered the words tell no instant; any that has passed will do.
    const bool whole = due.whole == instant::min();
    REQUIRE(value(3) == (whole ? due.after[0] : in_sql::ticks(due.whole)));
}

template <weir::policy Policy>
void sql_agrees()
{
    const scratch::schema schema(std::string("arithmetic_") + in_sql::name_of<Policy>::value);
    scratch::session      session;
    const auto            query =
        "SELECT o.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],"
        " $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[])"
        " WITH ORDINALITY AS u (v, f, s, t, a, b, c, n, l, at, place), LATERAL " +
        (schema / in_sql::name_of<Policy>::value) +
        "(u.v, u.f, u.s, u.t, u.a, u.b, u.c, u.n, u.l, u.at) AS o ORDER BY u.place";

    reference::generator random(20'261'130);
    const auto           all     = probes<Policy>(random, reference::steps(30'000));
    std::uint64_t        granted = 0, refused = 0, given_back = 0;
    for (std::size_t from = 0; from < all.size(); from += batch_size) {
        const auto size = std::min(batch_size, all.size() - from);
        const auto said = session.must(query, columns(&all[from], &all[from] + size));
        REQUIRE(said.rows.size() == size);
        for (std::size_t row = 0; row < size; ++row) {
            const auto& due = all[from + row];
            must_be(due, said, row);
            granted += due.numbers[0] == 0 && due.granted > 0;
            refused += due.numbers[0] == 0 && due.granted == 0;
            given_back += due.numbers[0] == 2 && due.after != due.before;
        }
    }
    // Else the random input says little.
    CAPTURE(granted, refused, given_back);
    REQUIRE(std::min(granted, refused) > all.size() / 20);
    REQUIRE(given_back > all.size() / 50);
}

}  // namespace

TEST_CASE("30000 random asks of fixed_window are computed by SQL as by the policy",
          "[postgres][property]")
{
    sql_agrees<weir::fixed_window>();
}

TEST_CASE("30000 random asks of sliding_window are computed by SQL as by the policy",
          "[postgres][property]")
{
    sql_agrees<weir::sliding_window>();
}

TEST_CASE("30000 random asks of gcra are computed by SQL as by the policy", "[postgres][property]")
{
    sql_agrees<weir::gcra>();
}
