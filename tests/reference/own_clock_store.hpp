// SPDX-License-Identifier: BSL-1.0
#pragma once

// A shared store without the sharing: memory's counters on a clock that callers do not have, with
// answers by callback and sets in one step.

#include <any>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weir/key.hpp"
#include "weir/pending.hpp"
#include "weir/policy.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/store.hpp"
#include "weir/store/memory.hpp"
#include "weir/time.hpp"

namespace reference {

/// Thread-safe.
class own_clock_store {
public:
    template <weir::policy Policy>
    using enrolment = weir::memory_counters<Policy>*;

    /// Where a callback is run: by who asks, or by a thread of the store's that `hold` keeps back.
    enum class completion { at_once, on_a_thread };

    static constexpr bool on_callers_clock = false;

    explicit own_clock_store(weir::instant start, completion way = completion::at_once)
        : way_(way), now_(start)
    {
    }
    ~own_clock_store() { finish(); }

    void advance(weir::duration by)
    {
        const std::lock_guard turn(mutex_);
        now_ += by;
    }

    /// How often it was asked one question, outside of sets; and how many sets it was handed.
    int asked(weir::verb what) const { return asked_[static_cast<std::size_t>(what)]; }
    int asked() const
    {
        int sum = 0;
        for (const auto& one : asked_) sum += one;
        return sum;
    }
    int sets() const { return sets_; }

    void hold() { held_ = true; }
    void release()
    {
        held_ = false;
        held_.notify_all();
    }

    /// Until all callbacks have run.
    void finish()
    {
        release();
        for (auto& one : threads_) one.join();
        threads_.clear();
    }

    template <weir::policy Policy>
    enrolment<Policy> enrol(std::string_view name, const Policy& limit, weir::outage_rule = {})
    {
        return counters_.enrol(name, limit);
    }
    template <weir::policy Policy>
    weir::key digest(weir::memory_counters<Policy>* limiter, const weir::subject& who) const
    {
        return counters_.digest(limiter, who);
    }
    template <weir::policy Policy>
    bool holds(weir::memory_counters<Policy>* limiter, const Policy& limit) const
    {
        return counters_.holds(limiter, limit);
    }

    template <weir::policy Policy>
    weir::reply<Policy> answer(weir::memory_counters<Policy>* limiter,
                               const weir::ask<Policy>&       question)
    {
        ++asked_[static_cast<std::size_t>(question.verb)];
        const std::lock_guard turn(mutex_);
        return judged(limiter, question);
    }

    template <weir::policy Policy, class Done>
    void answer_then(weir::memory_counters<Policy>* limiter, const weir::ask<Policy>& question,
                     Done done)
    {
        if (way_ == completion::at_once) return done(answer(limiter, question));
        const std::lock_guard turn(mutex_);
        threads_.emplace_back([this, limiter, question, done = std::move(done)]() mutable {
            held_.wait(true);
            done(answer(limiter, question));
        });
    }

    /// The states that the spends of a set would leave, by counter.
    using trial = std::map<std::pair<const void*, weir::key>, std::any>;

    struct staged {
        std::function<bool(trial&)> fits_after = {};  // those before it; takes its part of them
        std::function<void()>       spend      = {};
        std::any                    said       = {};
        bool                        fits       = false;
    };

    template <weir::policy Policy>
    void stage(weir::memory_counters<Policy>* limiter, const weir::ask<Policy>& question,
               staged& slot)
    {
        slot.fits_after = [this, limiter, question, &slot](trial& states) {
            auto looking    = question;
            looking.verb    = weir::verb::peek;
            auto  said      = judged(limiter, looking);
            auto  untouched = said;
            auto& found     = states[{limiter, question.who}];
            if (!found.has_value()) found = said.after;
            auto& state     = std::any_cast<typename Policy::state&>(found);
            said.after      = state;
            const bool fits = question.verb == weir::verb::spend
                                  ? question.limit.spend(state, question.cost, 1, now_) == 1
                                  : question.limit.read(state, 1, now_).fits;
            slot.said       = fits ? untouched : said;
            return fits;
        };
        slot.spend = [this, limiter, question, &slot] { slot.said = judged(limiter, question); };
    }

    template <weir::policy Policy>
    weir::reply<Policy> resolve(weir::memory_counters<Policy>*, const weir::ask<Policy>&,
                                const staged& slot) const
    {
        return std::any_cast<weir::reply<Policy>>(slot.said);
    }

    void admit_set(std::span<const weir::pending> set) noexcept
    {
        ++sets_;
        const std::lock_guard turn(mutex_);
        std::vector<staged>   slots(set.size());
        for (std::size_t i = 0; i < set.size(); ++i) set[i].stage(&slots[i]);
        trial states;
        bool  all = true;
        for (auto& slot : slots) all &= slot.fits = slot.fits_after(states);
        if (all)
            for (auto& slot : slots) slot.spend();
        for (std::size_t i = 0; i < set.size(); ++i)
            set[i].resolve(&slots[i], all || !slots[i].fits);
    }

private:
    template <weir::policy Policy>
    weir::reply<Policy> judged(weir::memory_counters<Policy>* limiter,
                               const weir::ask<Policy>&       question)
    {
        auto said  = counters_.answer(limiter, question, now_);
        said.asked = now_;
        return said;
    }

    completion                      way_;
    weir::memory_store              counters_;
    std::mutex                      mutex_;
    weir::instant                   now_;
    std::array<std::atomic<int>, 5> asked_ = {};
    std::atomic<int>                sets_  = 0;
    std::atomic<bool>               held_  = false;
    std::vector<std::thread>        threads_;
};

static_assert(weir::store_of<own_clock_store, weir::fixed_window>);

}  // namespace reference
