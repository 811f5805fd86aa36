// SPDX-License-Identifier: BSL-1.0
#pragma once

// What each limit must say, worked out from its definition over a log of all that was admitted:
// slow, in 128 bits, and without a line of the library's arithmetic.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"

namespace reference {

__extension__ using wide = __int128;

constexpr wide hour = wide{3'600'000'000'000};

/// Something that was taken, and when: units, or for gcra the time that they take to come back.
struct taken {
    wide at    = 0;
    wide units = 0;
};
using log = std::vector<taken>;

inline wide window_of(wide at, wide length)
{
    const auto into = at % length;
    return at - (into < 0 ? into + length : into);
}

inline wide sum_in_window(const log& all, wide start, wide length)
{
    wide sum = 0;
    for (const auto& one : all)
        if (window_of(one.at, length) == start) sum += one.units;
    return sum;
}

/// The definition of a limit. `believed`: the log as an ask of this instant meets it, empty where
/// it starts over; `judged`: the instant that the ask is judged at; `fits`: whether `cost` may be
/// taken then; `all_back`: from when on nothing counts any more.
template <class Policy>
struct definition;

/// What the two that count in windows share: an ask is never judged before the window of the last
/// admission, unless that lies further ahead than one window and one hour. `memory` is how many
/// windows an admission counts.
struct windowed {
    wide limit, length;
    int  memory;

    wide last_window(const log& all) const { return window_of(all.back().at, length); }

    log believed(const log& all, wide at) const
    {
        wide sum = 0;
        for (const auto& one : all)
            if (window_of(one.at, length) > last_window(all) - memory * length) sum += one.units;
        const bool too_far = !all.empty() && last_window(all) - at > std::max(length, hour);
        return sum == 0 || too_far ? log{} : all;
    }
    wide judged(const log& all, wide at) const
    {
        return all.empty() ? at : std::max(at, last_window(all));
    }
    wide all_back(const log& all) const
    {
        wide last = INT64_MIN;
        for (const auto& one : all)
            if (one.units > 0) last = std::max(last, window_of(one.at, length) + memory * length);
        return last;
    }
    wide worth(wide units) const { return units; }

    /// What stopped counting for good: no ask is judged before the last admission's window.
    void drop_spent(log& all, wide) const
    {
        const auto last = last_window(all);
        std::erase_if(all, [&](const taken& one) {
            return window_of(one.at, length) <= last - memory * length;
        });
    }

    /// Takes back the latest of what was taken in the window that ends at `lapses`.
    void give_back(log& all, wide units, wide lapses, wide at) const
    {
        if (at >= lapses || all.empty() || last_window(all) + length != lapses) return;
        for (auto one = all.rbegin();
             one != all.rend() && window_of(one->at, length) + length == lapses; ++one) {
            const auto back = std::min(one->units, units);
            one->units -= back;
            units -= back;
        }
    }
};

/// At most `limit` in each window.
template <>
struct definition<weir::fixed_window> : windowed {
    explicit definition(const weir::fixed_window& of)
        : windowed{static_cast<wide>(of.limit), of.window.count(), 1}
    {
    }
    wide capacity() const { return limit; }

    bool fits(const log& all, wide cost, wide at) const
    {
        return sum_in_window(all, window_of(judged(all, at), length), length) + cost <= limit;
    }
    wide charged(const log&, wide units, wide) const { return units; }
};

/// current*W + previous*(W - elapsed) + cost*W <= limit*W, elapsed in whole microseconds.
template <>
struct definition<weir::sliding_window> : windowed {
    explicit definition(const weir::sliding_window& of)
        : windowed{static_cast<wide>(of.limit), of.window.count(), 2}
    {
    }
    wide capacity() const { return limit; }

    bool fits(const log& all, wide cost, wide at) const
    {
        const auto when     = judged(all, at);
        const auto start    = window_of(when, length);
        const auto elapsed  = (when - start) / 1000 * 1000;
        const auto current  = sum_in_window(all, start, length);
        const auto previous = sum_in_window(all, start - length, length);
        return current * length + previous * (length - elapsed) + cost * length <= limit * length;
    }
    wide charged(const log&, wide units, wide) const { return units; }
};

/// n units at `at` iff max(at, tat) + n*T - at <= burst*T, and then tat = max(at, tat) + n*T.
template <>
struct definition<weir::gcra> {
    wide limit, burst, interval;

    explicit definition(const weir::gcra& of)
        : limit(static_cast<wide>(of.limit)),
          burst(static_cast<wide>(of.limit == 0 ? 0 : of.burst)),
          interval(limit == 0 ? 0 : (of.window.count() + limit - 1) / limit)
    {
    }
    wide capacity() const { return burst; }

    /// What is given back counts below zero, and reaches no further than the instant of giving.
    wide tat(const log& all) const
    {
        wide full_at = INT64_MIN;
        for (const auto& one : all)
            full_at = one.units >= 0 ? std::max(full_at, one.at) + one.units
                                     : std::max(one.at, full_at + one.units);
        return full_at;
    }
    log believed(const log& all, wide at) const
    {
        return tat(all) - at > burst * interval + hour ? log{} : all;
    }
    wide judged(const log&, wide at) const { return at; }
    wide all_back(const log& all) const { return tat(all); }
    wide worth(wide units) const { return units * interval; }

    /// When all was back as the last one came, the ones before it say nothing any more.
    void drop_spent(log& all, wide at) const
    {
        const auto last = all.back();
        all.pop_back();
        if (tat(all) <= at) all.clear();
        all.push_back(last);
    }

    bool fits(const log& all, wide cost, wide at) const
    {
        return limit > 0 && std::max(at, tat(all)) + worth(cost) - at <= worth(burst);
    }
    /// A debt is remembered up to an hour beyond the burst.
    wide charged(const log& all, wide units, wide at) const
    {
        return std::min(worth(units), at + worth(burst) + hour - std::max(at, tat(all)));
    }
    void give_back(log& all, wide units, wide lapses, wide at) const
    {
        if (at < lapses && tat(all) > at) all.push_back({at, -worth(std::min(units, burst))});
    }
};

/// One key under one limit. What it tells is searched for, not computed: the most that fits, and
/// the first instant at which the cost fits.
template <class Policy>
class oracle {
public:
    explicit oracle(const Policy& limit) : limit_(limit) {}

    struct told {
        bool                        admitted = false;
        std::uint64_t               left     = 0;
        std::optional<std::int64_t> retry_after;
        std::int64_t                reset_after = 0;
        std::int64_t                at          = 0;
    };

    told spend(std::uint64_t cost, std::int64_t at)
    {
        const auto seen = limit_.believed(log_, at);
        if (!limit_.fits(seen, static_cast<wide>(cost), at)) return refusal(seen, cost, at);
        take(seen, limit_.worth(static_cast<wide>(cost)), at);
        auto answer        = refusal(log_, 0, at);
        answer.admitted    = true;
        answer.retry_after = 0;
        return answer;
    }

    /// Whether `cost` would fit; 0 asks for one unit.
    told peek(std::uint64_t cost, std::int64_t at) const
    {
        const auto seen   = limit_.believed(log_, at);
        const auto units  = std::max<std::uint64_t>(cost, 1);
        auto       answer = refusal(seen, units, at);
        answer.admitted   = limit_.fits(seen, static_cast<wide>(units), at);
        return answer;
    }

    void charge(std::uint64_t cost, std::int64_t at)
    {
        const auto seen = limit_.believed(log_, at);
        take(seen, limit_.charged(seen, static_cast<wide>(cost), at), at);
    }
    void give_back(std::uint64_t cost, std::int64_t lapses, std::int64_t at)
    {
        limit_.give_back(log_, static_cast<wide>(cost), lapses, at);
    }
    void forget() { log_.clear(); }
    void set_limit(const Policy& limit) { limit_ = definition<Policy>(limit); }

private:
    void take(log seen, wide units, wide at)
    {
        log_ = std::move(seen);
        log_.push_back({limit_.judged(log_, at), units});
        limit_.drop_spent(log_, at);
    }

    told refusal(const log& seen, std::uint64_t cost, std::int64_t at) const
    {
        told answer;
        answer.left = static_cast<std::uint64_t>(last_true(
            0, limit_.capacity(), [&](wide units) { return limit_.fits(seen, units, at); }));
        if (static_cast<wide>(cost) <= limit_.capacity()) answer.retry_after = wait(seen, cost, at);
        if (!seen.empty())
            answer.reset_after =
                std::max<std::int64_t>(0, static_cast<std::int64_t>(limit_.all_back(seen) - at));
        answer.at = static_cast<std::int64_t>(limit_.judged(seen, at));
        return answer;
    }

    std::int64_t wait(const log& seen, std::uint64_t cost, wide at) const
    {
        const auto refused = [&](wide by) {
            return !limit_.fits(seen, static_cast<wide>(cost), at + by);
        };
        if (!refused(0)) return 0;
        return static_cast<std::int64_t>(last_true(0, limit_.all_back(seen) - at, refused) + 1);
    }

    /// The last in [from, to] of which `holds` is true, where it is true up to there; `from` if
    /// none.
    template <class Holds>
    static wide last_true(wide from, wide to, Holds&& holds)
    {
        while (from < to) {
            const auto middle = from + (to - from + 1) / 2;
            if (holds(middle)) from = middle;
            else to = middle - 1;
        }
        return from;
    }

    definition<Policy> limit_;
    log                log_;
};

}  // namespace reference
