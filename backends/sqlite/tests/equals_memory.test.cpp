// SPDX-License-Identifier: BSL-1.0

// A file of counters and memory_store are asked the same, step by step, and must tell the same.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/sqlite/store.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include "../../../tests/reference/random.hpp"
#include "catch.hpp"
#include "scratch.hpp"

using namespace std::chrono_literals;
using reference::random_number;
using weir::verb;

namespace {

/// One limiter on both stores, and eight keys of it.
template <weir::policy Policy>
class pair {
public:
    pair(weir::sqlite::store& file, weir::memory_store& memory, const std::string& name,
         const Policy& limit)
        : file_(file), memory_(memory), limit_(limit), in_file_(file.enrol(name, limit)),
          in_memory_(memory.enrol(name, limit))
    {
    }

    /// False if the two differ in anything that a caller is told.
    bool agree(reference::generator& random, weir::instant at)
    {
        auto       question = next(random);
        const auto who      = std::to_string(random() % 8);
        question.who        = file_.digest(in_file_, who);
        const auto said     = file_.answer(in_file_, question, at);
        question.who        = memory_.digest(in_memory_, who);
        const auto due      = memory_.answer(in_memory_, question, at);
        return said.granted == due.granted && said.basis == due.basis && said.at == due.at &&
               told_alike(question, said, due, at);
    }

private:
    weir::ask<Policy> next(reference::generator& random)
    {
        weir::ask<Policy> question{.limit = limit_};
        if (reference::chance(random, 5))
            question.limit.limit = limit_.limit + random() % 3;  // set_limit
        if constexpr (requires { question.limit.burst; })
            question.limit = {
                .limit = question.limit.limit, .window = limit_.window, .burst = limit_.burst};
        question.cost  = reference::chance(random, 50) ? 1 : random() % (limit_.limit + 3);
        question.times = reference::chance(random, 70) ? 1 : 1 + random() % 6;
        const auto dice = random() % 100;
        if (dice < 8) question.verb = verb::peek;
        else if (dice < 13) question.verb = verb::charge;
        else if (dice < 28) question.verb = verb::give_back, question.lapses = last_lapse_;
        else if (dice < 29) question.verb = verb::forget;
        return question;
    }

    bool told_alike(weir::ask<Policy> question, const weir::reply<Policy>& said,
                    const weir::reply<Policy>& due, weir::instant at)
    {
        const bool spends = question.verb == verb::spend;
        if (!spends) question.verb = verb::peek, question.times = 1;
        weir::merged_callers ours(question, said, {}, at), theirs(question, due, {}, at);
        bool                 alike = true;
        for (auto callers = question.times; callers > 0; --callers) {
            const auto made = spends ? ours.next() : weir::told(question, said, {}, at);
            alike &= made == (spends ? theirs.next() : weir::told(question, due, {}, at));
            if (made && spends) last_lapse_ = limit_.lapses(made);
        }
        return alike;
    }

    weir::sqlite::store&                                   file_;
    weir::memory_store&                                    memory_;
    Policy                                                 limit_;
    typename weir::sqlite::store::enrolment<Policy>        in_file_;
    typename weir::memory_store::template enrolment<Policy> in_memory_;
    weir::instant                                          last_lapse_ = weir::instant::max();
};

/// Mostly small steps onward; now and then to an edge, far ahead, or back.
weir::instant moved(reference::generator& random, weir::instant at)
{
    const auto by = [&](auto least, auto most) {
        return weir::duration(random_number<std::int64_t>(random, weir::duration(least).count(),
                                                          weir::duration(most).count()));
    };
    const auto dice = random() % 1'000;
    if (dice < 400) return at;
    if (dice < 800) return at + by(0ns, 300ms);
    if (dice < 900) return at + by(0s, 90s);
    if (dice < 950) return weir::window_end(at, 1min) - by(0ns, 2ns);
    if (dice < 990) return at - by(0ns, 2s);
    if (dice < 997) return at - by(0s, 3min);
    return dice < 999 ? at + by(0h, 30h) : at - by(61min, 90min);
}

template <weir::policy Policy>
void replay(std::vector<Policy> limits, std::uint64_t steps, weir::instant at)
{
    const scratch::folder folder;
    auto                  options = scratch::in(folder / "limits.db");
    options.keep = std::chrono::years(10);  // memory forgets nothing that has a slot
    weir::sqlite::store       file(options);
    // Room and a fixed seed: memory may give a recovered counter's slot to another key, and after a
    // step back of the clock that counter would be missed.
    weir::memory_store        memory({.max_keys = 100'000, .seed = weir::hash_seed{1, 2}});
    std::vector<pair<Policy>> pairs;
    for (const auto& limit : limits)
        pairs.emplace_back(file, memory, std::to_string(pairs.size()), limit);

    reference::generator random(20'261'129);
    for (std::uint64_t step = 0; step < reference::steps(steps); ++step) {
        at = moved(random, at);
        INFO("step " << step);
        REQUIRE(pairs[random() % pairs.size()].agree(random, at));
    }
}

constexpr auto new_year = weir::testing::manual_clock::new_year;

}  // namespace

TEST_CASE("34000 random asks of fixed_window are told by a file what memory tells",
          "[sqlite][property]")
{
    using weir::fixed_window;
    replay<fixed_window>({{.limit = 0, .window = 1s},
                          {.limit = 1, .window = 1s},
                          {.limit = 10, .window = 1min},
                          {.limit = 1'000'000'007, .window = 3h},
                          {.limit = 7, .window = 7ms}},
                         34'000, new_year);
}

TEST_CASE("34000 random asks of sliding_window are told by a file what memory tells",
          "[sqlite][property]")
{
    using weir::sliding_window;
    replay<sliding_window>({{.limit = 0, .window = 1s},
                            {.limit = 1, .window = 1s},
                            {.limit = 10, .window = 1min},
                            {.limit = 1'000'003, .window = 3h},
                            {.limit = 7, .window = 777us}},
                           34'000, new_year);
}

TEST_CASE("34000 random asks of gcra are told by a file what memory tells", "[sqlite][property]")
{
    using weir::gcra;
    replay<gcra>({{.limit = 0, .window = 1s},
                  {.limit = 1, .window = 1s},
                  {.limit = 10, .window = 1min, .burst = 3},
                  {.limit = 1'000'003, .window = 3h, .burst = 10},
                  {.limit = 7, .window = 777us}},
                 34'000, new_year);
}

TEST_CASE("before the Unix epoch a file and memory agree too", "[sqlite][property]")
{
    const weir::instant long_ago(-std::chrono::hours(24 * 365 * 20));
    replay<weir::fixed_window>({{.limit = 5, .window = 1min}}, 3'000, long_ago);
    replay<weir::sliding_window>({{.limit = 5, .window = 1min}}, 3'000, long_ago);
    replay<weir::gcra>({{.limit = 5, .window = 1min}}, 3'000, long_ago);
}
