// SPDX-License-Identifier: BSL-1.0
#pragma once

// Exact counters in this process: bounded, allocated at the start, without locks, threads, sweeps
// or pointers in the table. When a table is full, a sketch counts what finds no slot.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/store.hpp"
#include "weir/store/enrolled.hpp"
#include "weir/store/state_sketch.hpp"
#include "weir/store/table.hpp"
#include "weir/time.hpp"
#include "weir/warning.hpp"

namespace weir {

/// What happens to a key for which a full table has no slot.
enum class overflow : std::uint8_t {
    sketch,  ///< It is counted in a sketch: estimated, never too low.
    refuse,  ///< It is refused, as if the store were away, until a slot is free.
};

struct memory_options {
    std::size_t    max_keys = 100'000;  ///< Keys counted exactly, for each enrolled limiter.
    weir::overflow overflow = weir::overflow::sketch;  ///< For the keys beyond them.
    instant (*clock)()      = &weir::now;  ///< Asked where the caller hands in no instant.
    /// Of the keys; by default the process's own, random.
    std::optional<hash_seed> seed = std::nullopt;
    warning_listener warn = &warn_on_stderr;  ///< Told once of each warning (docs/warnings.md).
};

/// The counters of one limiter: a table, and a sketch for what finds no slot in it.
template <policy Policy>
class memory_counters {
public:
    memory_counters(std::string_view name, const Policy& limit, const memory_options& options,
                    const hash_seed& seed);

    [[nodiscard]] key digest(const subject& who) const noexcept { return digest_(who); }
    void              prefetch(const key& who) const noexcept { table_.prefetch(who); }
    reply<Policy>     answer(const ask<Policy>& question, instant at) noexcept;

    [[nodiscard]] std::size_t bytes() const noexcept;
    [[nodiscard]] std::size_t live(const Policy& limit, instant at) const noexcept
    {
        return table_.live(limit, at);
    }
    [[nodiscard]] const sketch_size* overflow_size() const noexcept
    {
        return overflow_ ? &overflow_->size() : nullptr;
    }
    [[nodiscard]] double overflow_error(const Policy& limit, instant at) const noexcept;

private:
    using state   = typename Policy::state;
    using outcome = typename table<Policy>::outcome;

    static bool          change(const ask<Policy>& question, state& s, std::uint64_t& granted,
                                instant at) noexcept;
    static reply<Policy> told(const ask<Policy>& question, const outcome& done, basis on,
                              instant at) noexcept;

    [[gnu::noinline]] reply<Policy> begin(ask<Policy> question, instant at) noexcept;
    [[gnu::noinline]] reply<Policy> overflow_answer(const ask<Policy>& question, const grid& now,
                                                    instant at) noexcept;
    [[gnu::noinline]] reply<Policy> seldom(ask<Policy> question, instant at) noexcept;

    weir::digest                        digest_;
    table<Policy>                       table_;
    std::optional<state_sketch<Policy>> overflow_;
    std::atomic<bool>                   overflowed_{false};  // the sketch knows something
};

/// Thread-safe; must outlive the limiters on it. Each enrolled limiter has `max_keys` of its own.
/// Memory is taken when a limiter is enrolled, about 38 bytes for each of `max_keys`, and is never
/// more than `bytes()`.
class memory_store {
public:
    template <policy Policy>
    using enrolment = memory_counters<Policy>*;

    static constexpr bool on_callers_clock = true;

    /// Throws std::invalid_argument for max_keys = 0.
    explicit memory_store(const memory_options& options = {});

    /// Throws std::invalid_argument for a limit that the table cannot hold: sliding_window up to
    /// 2^33 - 1 units, the others any. Throws std::bad_alloc.
    template <policy Policy>
    enrolment<Policy> enrol(std::string_view name, const Policy& limit, outage_rule = fail_closed);

    template <policy Policy>
    [[nodiscard]] key digest(memory_counters<Policy>* limiter, const subject& who) const noexcept
    {
        return limiter->digest(who);
    }
    template <policy Policy>
    [[nodiscard]] bool holds(memory_counters<Policy>*, const Policy& limit) const noexcept
    {
        return fits_slot(limit);
    }
    template <policy Policy>
    void prefetch(memory_counters<Policy>* limiter, const key& who) const noexcept
    {
        limiter->prefetch(who);
    }
    template <policy Policy>
    reply<Policy> answer(memory_counters<Policy>* limiter, const ask<Policy>& question,
                         instant at) noexcept
    {
        return limiter->answer(question, at);
    }

    /// Calls `visit(key, state, now)` for each state of a guard's lockouts; O(max_keys).
    template <policy Policy, class Visit>
    bool each_lockout(memory_counters<Policy>* limiter, const Policy&, Visit&& visit) const
    {
        limiter->for_each([&, at = now()](const auto&... seen) { visit(seen..., at); });
        return true;
    }

    [[nodiscard]] instant     now() const noexcept { return options_.clock(); }
    [[nodiscard]] std::size_t bytes() const { return sizeof(*this) + enrolled_.bytes(); }

private:
    memory_options            options_;
    hash_seed                 seed_;
    enrolled<memory_counters> enrolled_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
memory_counters<Policy>::memory_counters(std::string_view name, const Policy& limit,
                                         const memory_options& options, const hash_seed& seed)
    : digest_(seed, Policy::id, name, limit.window), table_(limit, options.max_keys)
{
    // An eighth of the keys wide, 8 bytes a key. With that many keys beyond the table one in six of
    // them is over-counted; a flood of more over-counts nearly all, by what falls on their cells.
    if (options.overflow == overflow::sketch)
        overflow_.emplace(limit, sketch_size{.width = options.max_keys / 8 + 1});
}

/// What the verb does to a state; false if it stays as it was.
template <policy Policy>
bool memory_counters<Policy>::change(const ask<Policy>& question, state& s, std::uint64_t& granted,
                                     instant at) noexcept
{
    const auto before = s;
    const auto units  = question.cost * question.times;
    switch (question.verb) {
    case verb::spend:
        granted = question.limit.spend(s, question.cost, question.times, at);
        break;
    case verb::charge:
        question.limit.charge(s, units, at);
        break;
    case verb::give_back:
        question.limit.give_back(s, units, question.lapses, at);
        break;
    case verb::forget:
        s = {};
        break;
    case verb::peek:
        break;
    }
    return !(s == before);
}

template <policy Policy>
reply<Policy> memory_counters<Policy>::told(const ask<Policy>& question, const outcome& done,
                                            basis on, instant at) noexcept
{
    return {done.granted, done.after, question.limit.judged_at(done.after, at), on};
}

template <policy Policy>
reply<Policy> memory_counters<Policy>::answer(const ask<Policy>& question, instant at) noexcept
{
    if (question.verb != verb::spend) [[unlikely]]
        return seldom(question, at);
    const auto spend = [&](state& s, std::uint64_t& granted) {
        granted = question.limit.spend(s, question.cost, question.times, at);
        return granted > 0;
    };
    outcome done;
    if (table_.update(question.who, table_.at(at), spend, done)) [[likely]]
        return told(question, done, basis::counted, at);
    // Taken apart and put together again: handed on as it is, the ask would have to lie in memory.
    return begin({question.who, question.limit, question.cost, question.times, question.verb,
                  question.lapses},
                 at);
}

/// All verbs but spend: kept out of the way of the one that each request takes.
template <policy Policy>
reply<Policy> memory_counters<Policy>::seldom(ask<Policy> question, instant at) noexcept
{
    const auto act = [&](state& s, std::uint64_t& granted) {
        return change(question, s, granted, at);
    };
    outcome done;
    if (table_.update(question.who, table_.at(at), act, done))
        return told(question, done, basis::counted, at);
    if (question.verb == verb::charge) return begin(question, at);
    if (overflowed_.load()) return overflow_->answer(question, at);
    return told(question, {}, basis::counted, at);
}

/// The first ask of a key. What the sketch knows of it is where it starts, so that a slot that
/// comes free does not free the key.
template <policy Policy>
reply<Policy> memory_counters<Policy>::begin(ask<Policy> question, instant at) noexcept
{
    auto       on  = basis::counted;
    const auto now = table_.at(at);
    const auto act = [&](state& s, std::uint64_t& granted) {
        return change(question, s, granted, at);
    };
    const auto first = [&]() -> state {
        if (!overflowed_.load()) return {};
        const auto known = overflow_->estimate(question.limit, question.who, at);
        if (question.limit.recovered_at(known) > at) on = basis::estimated;
        return known;
    };
    outcome done;
    if (table_.update_or_insert(question.limit, question.who, now, act, first, done))
        return told(question, done, on, at);
    return overflow_answer(question, now, at);
}

/// Counts in the sketch. An insertion of the key that is under way may have looked into the sketch
/// before that: it begins again, or if it has ended already, the counter it made decides after all.
/// Of two such asks both units may then be counted twice, never less than once.
template <policy Policy>
reply<Policy> memory_counters<Policy>::overflow_answer(const ask<Policy>& question, const grid& now,
                                                       instant at) noexcept
{
    if (!overflow_) return {.at = at, .basis = basis::store_unavailable};
    overflowed_.store(true);
    const auto made = overflow_->answer(question, at);
    if (made.granted == 0 && question.verb == verb::spend) return made;

    table_.clear_claims(question.who);
    const auto act = [&](state& s, std::uint64_t& granted) {
        return change(question, s, granted, at);
    };
    outcome done;
    if (table_.update(question.who, now, act, done))
        return told(question, done, basis::estimated, at);
    return made;
}

template <policy Policy>
std::size_t memory_counters<Policy>::bytes() const noexcept
{
    return sizeof(*this) + table_.bytes() + (overflow_ ? overflow_->bytes() : 0);
}

template <policy Policy>
double memory_counters<Policy>::overflow_error(const Policy& limit, instant at) const noexcept
{
    return overflow_ ? overflow_->present_error(limit, at) : 0.0;
}

inline memory_store::memory_store(const memory_options& options)
    : options_(options), seed_(options.seed ? *options.seed : hash_seed::of_process()),
      enrolled_(options.warn)
{
    if (options.max_keys == 0)
        detail::invalid("memory_store: max_keys is 0; at least 1 is allowed");
}

template <policy Policy>
auto memory_store::enrol(std::string_view name, const Policy& limit, outage_rule)
    -> enrolment<Policy>
{
    check_slot(name, limit);
    return &enrolled_.find_or_make(name, limit, [&] {
        return std::make_unique<memory_counters<Policy>>(name, limit, options_, seed_);
    });
}

}  // namespace weir

#include "weir/store/lockouts.hpp"  // what it keeps of lockouts
