// SPDX-License-Identifier: BSL-1.0

// One process of the proof of exactness: weir-proof-asker CONNINFO SCHEMA LOG NUMBER THREADS LENGTH
// asks limiters on one database from THREADS threads, for a LENGTH of "6s", or "500" deeds each,
// and logs every answer (log.hpp). NUMBER, 0 for the first process, seeds it and picks how it asks.
//
// Says "ready" and reads the instant at which all processes begin, in nanoseconds of
// CLOCK_MONOTONIC; says "done" and waits for the end of its input, when all have ended; then looks
// at what the ledgers hold, and goes. tests/proof/run starts a crew of these.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "log.hpp"
#include "reference/random.hpp"
#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/postgres/store.hpp"

namespace {

using namespace std::chrono_literals;
using proof::span;
using reference::chance;
using reference::generator;
using reference::random_number;

/// Names of keys, the k-th 1/k times as often as the first (Zipf).
class names {
public:
    explicit names(std::size_t count)
    {
        double sum = 0;
        for (std::size_t k = 1; k <= count; ++k) {
            sums_.push_back(sum += 1.0 / static_cast<double>(k));
            texts_.push_back(std::to_string(k));
        }
    }

    [[nodiscard]] const std::string& draw(generator& random) const
    {
        const auto at = static_cast<double>(random() >> 11) * 0x1p-53 * sums_.back();
        return texts_[static_cast<std::size_t>(std::ranges::upper_bound(sums_, at) -
                                               sums_.begin())];
    }

    [[nodiscard]] const std::vector<std::string>& all() const noexcept { return texts_; }

private:
    std::vector<double>      sums_;
    std::vector<std::string> texts_;
};

/// What a thread carries from one deed to the next.
struct worker {
    proof::log log;
    generator  random;
    bool       callbacks  = false;
    bool       remembered = false;  ///< The last answer came without a trip.

    std::deque<std::function<void()>> held = {};  ///< What will be given back.
};

using told = std::function<void(const weir::decision&)>;

/// A limiter, whatever its policy.
struct rule {
    int                                                              id = 0;
    std::shared_ptr<names>                                           keys;
    std::uint64_t                                                    most_cost = 1;
    std::function<weir::decision(const std::string&, std::uint64_t)> admit;
    std::function<weir::pending(const std::string&, std::uint64_t)>  part;
    std::function<void(const std::string&, std::uint64_t, told)>     later;
    std::function<void(worker&, const std::string&)>                 keep_books;
    std::function<weir::decision(const std::string&)>                look;

    [[nodiscard]] std::uint64_t draw_cost(generator& random) const
    {
        return random_number<std::uint64_t>(random, 1, most_cost);
    }
};

weir::decision ask(worker& own, const rule& of, const std::string& key, std::uint64_t cost)
{
    span       taken;
    const auto made = of.admit(key, cost);
    taken.close();
    own.remembered |= made.basis == weir::basis::remembered;
    own.log.line("ask", of.id, key, made, taken);
    return made;
}

// -- books: what is taken, charged and given back must add up -------------------------------------

/// A give-back, or a settling for less.
template <class Act>
void put_back(worker& own, int id, const std::string& key, std::uint64_t units, Act&& act)
{
    span taken;
    act();
    taken.close();
    own.log.line("back", id, key, units, taken);
}

/// Mostly it costs nothing in the end, so that the ledger stays in motion.
template <class Limiter>
void reserve_and_settle(worker& own, const Limiter& limiter, int id, const std::string& key)
{
    const auto estimate = random_number<std::uint64_t>(own.random, 1, 4);
    span       taken;
    auto       kept = limiter.reserve(key, {.estimate = estimate});
    taken.close();
    own.log.line("ask", id, key, kept.decision(), taken);
    if (!kept) return;
    if (chance(own.random, 97)) {
        const auto actual = chance(own.random, 97) ? 0 : estimate / 2;
        put_back(own, id, key, estimate - actual, [&] { kept.settle(actual); });
    } else if (!std::is_same_v<decltype(limiter.limit()), weir::gcra>) {
        // The debt of a gcra ends an hour beyond its burst, which no log could tell.
        span charged;
        kept.settle(estimate + 1);
        charged.close();
        own.log.line("charge", id, key, 1, charged);
    }
}

/// Takes, and gives back some deeds later.
template <class Limiter>
void take_and_return(worker& own, const Limiter& limiter, const rule& of, const std::string& key)
{
    const auto made = ask(own, of, key, of.draw_cost(own.random));
    if (made)
        own.held.push_back([&own, &limiter, id = of.id, key, made] {
            put_back(own, id, key, made.cost, [&] { limiter.give_back(key, made); });
        });
    if (own.held.size() > 3 || (!own.held.empty() && !made)) {
        own.held.front()();
        own.held.pop_front();
    }
}

// -- rules ----------------------------------------------------------------------------------------

/// All limiters of the proof on one store. Limits are small and windows short, so that most asks
/// are refused and many windows pass. check.py knows a kind by its name:
///   plain   nothing but asks: each unit can be followed
///   unit    the same, of cost 1: what is admitted is the limit, or all that was asked
///   leased  units are taken ahead: only the bound holds
///   ledger  units are given back and charged: a window that never ends must add up
class rules {
public:
    rules(weir::postgres::store& counters, const proof::log_file& to)
        : counters_(&counters), log_(to)
    {
        const auto few = std::make_shared<names>(10), many = std::make_shared<names>(10'000),
                   one = std::make_shared<names>(1);
        using weir::fixed_window, weir::gcra, weir::leased, weir::sliding_window;

        add(plain, "plain", one, 5, fixed_window{.limit = 40, .window = 200ms});
        add(plain, "plain", few, 5, fixed_window{.limit = 20, .window = 500ms});
        add(plain, "plain", many, 5, fixed_window{.limit = 6, .window = 2s});
        add(plain, "plain", one, 5, sliding_window{.limit = 40, .window = 300ms});
        add(plain, "plain", few, 5, sliding_window{.limit = 20, .window = 700ms});
        add(plain, "plain", many, 5, sliding_window{.limit = 6, .window = 2s});
        add(plain, "plain", one, 5, gcra{.limit = 200, .window = 1s, .burst = 30});
        add(plain, "plain", few, 5, gcra{.limit = 40, .window = 1s, .burst = 15});
        add(plain, "plain", many, 5, gcra{.limit = 7, .window = 2s, .burst = 6});
        add(unit, "unit", few, 1, fixed_window{.limit = 30, .window = 250ms});
        add(unit, "unit", one, 1, fixed_window{.limit = 100, .window = 500ms});
        add(ahead, "leased", few, 2, leased{fixed_window{.limit = 40, .window = 400ms}, 8});
        add(ahead, "leased", few, 2, leased{sliding_window{.limit = 40, .window = 600ms}, 8});
        constexpr auto endless = weir::duration(std::chrono::days(25'000));
        add(ledgers, "ledger", few, 5, fixed_window{.limit = 300, .window = endless});
        add(ledgers, "ledger", few, 5, sliding_window{.limit = 300, .window = endless});
        add(ledgers, "ledger", few, 5, gcra{.limit = 300, .window = endless});
        add(once, "unit", std::make_shared<names>(50), 1, gcra{.limit = 10, .window = 24h});
    }

    std::deque<rule> plain, unit, ahead, ledgers, once;

private:
    static std::pair<const char*, std::uint64_t> named(const weir::fixed_window& limit)
    {
        return {"fixed_window", limit.limit};
    }
    static std::pair<const char*, std::uint64_t> named(const weir::sliding_window& limit)
    {
        return {"sliding_window", limit.limit};
    }
    static std::pair<const char*, std::uint64_t> named(const weir::gcra& limit)
    {
        return {"gcra", limit.burst};
    }

    template <class Policy>
    void add(std::deque<rule>& to, const char* kind, std::shared_ptr<names> keys,
             std::uint64_t most_cost, const Policy& limit)
    {
        const int  id = count_++;
        const auto on = std::make_shared<weir::limiter<Policy, weir::postgres::store>>(
            "proof." + std::to_string(id), limit, *counters_);
        const auto [policy, burst] = named(limit);
        log_.line("rule", id, policy, limit.limit, limit.window.count(), burst, kind);

        auto& made     = to.emplace_back();
        made.id        = id;
        made.keys      = std::move(keys);
        made.most_cost = most_cost;
        made.admit = [on](const auto& key, auto cost) { return on->admit(key, {.cost = cost}); };
        made.part  = [on](const auto& key, auto cost) { return (*on)(key, {.cost = cost}); };
        made.later = [on](const auto& key, auto cost, auto done) {
            on->admit_then(key, {.cost = cost}, std::move(done));
        };
        made.look       = [on](const auto& key) { return on->peek(key); };
        made.keep_books = [on, &made](worker& own, const auto& key) {
            if (chance(own.random, 50)) reserve_and_settle(own, *on, made.id, key);
            else take_and_return(own, *on, made, key);
        };
    }

    weir::postgres::store* counters_;
    proof::log             log_;
    int                    count_ = 0;
};

// -- deeds ----------------------------------------------------------------------------------------

const rule& any_of(const std::deque<rule>& some, generator& random)
{
    return some[random() % some.size()];
}

/// Two or three rules, no one twice.
std::vector<const rule*> draw_rules(const std::deque<rule>& some, generator& random)
{
    std::vector<const rule*> drawn;
    for (const auto count = 2 + random() % 2; drawn.size() < count;) {
        const auto* const one = &any_of(some, random);
        if (std::ranges::find(drawn, one) == drawn.end()) drawn.push_back(one);
    }
    return drawn;
}

/// One rule after the other, as long as they admit. Written after it is known how many they were.
void ask_in_turn(worker& own, const std::deque<rule>& some)
{
    const auto drawn = draw_rules(some, own.random);
    struct asked {
        weir::decision made;
        std::string    key;
        span           taken;
    };
    std::vector<asked> steps;
    const auto         step = [&] {
        const auto& of   = *drawn[steps.size()];
        const auto& key  = of.keys->draw(own.random);
        const auto  cost = of.draw_cost(own.random);
        span        taken;
        const auto  made = of.admit(key, cost);
        taken.close();
        steps.push_back({made, key, taken});
        return made;
    };
    const auto joint =
        drawn.size() == 2 ? step().and_then(step) : step().and_then(step).and_then(step);
    own.log.line("chain", steps.size(), int{bool(joint)});
    for (std::size_t n = 0; n < steps.size(); ++n)
        own.log.line("ask", drawn[n]->id, steps[n].key, steps[n].made, steps[n].taken);
    own.remembered |= joint.basis == weir::basis::remembered;
}

void ask_as_a_set(worker& own, const std::deque<rule>& some)
{
    const auto                 drawn = draw_rules(some, own.random);
    std::vector<std::string>   keys;
    std::vector<weir::pending> set;
    for (const auto* const of : drawn) {
        keys.push_back(of->keys->draw(own.random));
        set.push_back(of->part(keys.back(), of->draw_cost(own.random)));
    }
    span       taken;
    const auto joint = weir::admit_all(set);
    taken.close();
    own.log.line("set", set.size(), int{bool(joint)}, joint.refused_by().size(), taken);
    for (std::size_t n = 0; n < set.size(); ++n)
        own.log.line("part", drawn[n]->id, keys[n], set[n].made());
    own.remembered |= joint.basis == weir::basis::remembered;
}

/// Several asks under way at once, each answered by a callback.
void ask_for_later(worker& own, const std::deque<rule>& some)
{
    struct asked {
        const rule*    of = nullptr;
        std::string    key;
        std::uint64_t  cost = 1;
        span           taken;
        weir::decision made;
    };
    std::vector<asked> all(8);
    // Shared with the callbacks: the last one still rings when nobody waits here any more.
    const auto missing = std::make_shared<std::atomic<std::size_t>>(all.size());
    for (auto& one : all) {
        one.of    = &any_of(some, own.random);
        one.key   = one.of->keys->draw(own.random);
        one.cost  = one.of->draw_cost(own.random);
        one.taken = {};
        one.of->later(one.key, one.cost, [&one, missing](const weir::decision& made) {
            one.taken.close();
            one.made = made;
            if (missing->fetch_sub(1) == 1) missing->notify_one();
        });
    }
    for (auto left = missing->load(); left > 0; left = missing->load()) missing->wait(left);
    for (const auto& one : all) {
        own.log.line("ask", one.of->id, one.key, one.made, one.taken);
        own.remembered |= one.made.basis == weir::basis::remembered;
    }
}

void ask_alone(worker& own, const rule& of)
{
    (void)ask(own, of, of.keys->draw(own.random), of.draw_cost(own.random));
}

void do_something(worker& own, const rules& all)
{
    const auto which = own.random() % 100;
    own.remembered   = false;
    if (which < 30) {
        ask_in_turn(own, all.plain);
    } else if (which < 55) {
        ask_as_a_set(own, all.plain);
    } else if (which < 75) {
        const auto& some = which < 65 ? all.plain : all.unit;
        if (own.callbacks) ask_for_later(own, some);
        else ask_alone(own, any_of(some, own.random));
    } else if (which < 85) {
        ask_alone(own, any_of(all.unit, own.random));
    } else if (which < 90) {
        ask_alone(own, any_of(all.ahead, own.random));
    } else {
        const auto& of = any_of(all.ledgers, own.random);
        of.keep_books(own, of.keys->draw(own.random));
    }
    own.log.entry_over();
    // What is known here is answered in no time, and would be most of the log.
    if (own.remembered) std::this_thread::sleep_for(random_number(own.random, 1, 4) * 1ms);
}

/// For so long, or so many deeds of each thread.
struct length {
    std::optional<std::chrono::seconds> time;
    std::uint64_t                       deeds = 0;
};

length read_length(std::string_view text)
{
    const auto number = std::strtoull(text.data(), nullptr, 10);
    if (text.ends_with('s')) return {.time = std::chrono::seconds(number)};
    return {.time = {}, .deeds = number};
}

/// First what must come at one moment: each thread asks once for each of fifty keys (O31).
void work(worker& own, const rules& all, proof::clock::time_point begin, const length& of)
{
    for (const auto& key : all.once.front().keys->all()) {
        std::this_thread::sleep_until(begin);
        (void)ask(own, all.once.front(), key, 1);
        begin += 5ms;
    }
    if (of.time)
        for (const auto end = begin + *of.time; proof::clock::now() < end;) do_something(own, all);
    else
        for (auto left = of.deeds; left > 0; --left) do_something(own, all);
}

/// Half of the processes let an attendant serve their lines, half remember refusals, and one in
/// four names its statements: each way meets each other one on the same keys.
weir::postgres::store_options options(const char* conninfo, const char* schema, unsigned number)
{
    return {.conninfo         = conninfo,
            .key_secret       = "a secret of thirty-two bytes....",
            .deadline         = 2s,  // a busy machine is no outage
            .schema           = schema,
            .named_statements = number % 4 == 3,
            .memo_longest     = number % 4 >= 2 ? weir::duration(1s) : weir::duration::zero(),
            .patience         = 30s};
}

proof::clock::time_point wait_for_begin()
{
    std::int64_t begin = 0;
    std::puts("ready");
    std::fflush(stdout);
    if (std::scanf("%" SCNd64, &begin) != 1) std::exit(1);
    return proof::clock::time_point(std::chrono::nanoseconds(begin));
}

void wait_for_all()
{
    std::puts("done");
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
}

int prove(const char* conninfo, const char* schema, const char* path, unsigned number,
          unsigned threads, const length& of)
{
    weir::postgres::store    counters(options(conninfo, schema, number));
    const proof::log_file    file(path);
    const rules              all(counters, file);
    const auto               begin = wait_for_begin();
    std::vector<std::thread> crew;
    for (unsigned n = 0; n < threads; ++n)
        crew.emplace_back([&, n] {
            worker own{.log       = proof::log(file),
                       .random    = generator(number * 1'000 + n),
                       .callbacks = number % 2 == 1};
            work(own, all, begin, of);
        });
    for (auto& one : crew) one.join();

    wait_for_all();
    proof::log looks(file);
    for (const auto& of_ledger : all.ledgers)
        for (const auto& key : of_ledger.keys->all()) {
            const auto seen = of_ledger.look(key);
            looks.line("look", of_ledger.id, key, seen.left,
                       int{static_cast<std::uint8_t>(seen.basis)});
        }
    return 0;
}

}  // namespace

int main(int count, char** words)
{
    if (count != 7) {
        std::fputs("weir-proof-asker CONNINFO SCHEMA LOG NUMBER THREADS LENGTH\n", stderr);
        return 2;
    }
    const auto number = [&](int n) { return static_cast<unsigned>(std::atoi(words[n])); };
    try {
        return prove(words[1], words[2], words[3], number(4), number(5), read_length(words[6]));
    } catch (const std::exception& wrong) {
        std::fprintf(stderr, "weir-proof-asker: %s\n", wrong.what());
        return 1;
    }
}
