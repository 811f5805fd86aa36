// SPDX-License-Identifier: BSL-1.0
#pragma once

// A store that answers what a test wrote down, so that code around a limiter can be shown every
// answer there is: a refusal, an estimate, a store that is away.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/decision.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::testing {

/// One line of a script. The figures that belong to it (left, retry_after, reset_after) are those
/// of a counter that this ask has begun (admitted) or that was used up at this instant (refused).
struct scripted_answer {
    weir::verdict verdict = weir::verdict::admitted;
    weir::basis   basis   = weir::basis::counted;
};

/// What the store was asked, for the test to look at.
struct recorded_ask {
    key           who   = {};
    weir::verb    verb  = weir::verb::spend;
    std::uint64_t cost  = 1;
    std::uint64_t times = 1;
    instant       at    = {};
};

/// Answers by its script, line by line, whatever is asked; the last line is repeated for ever.
///
///     weir::testing::scripted_store counters({{weir::verdict::admitted},
///                                             {weir::verdict::refused,
///                                              weir::basis::store_unavailable}});
///     weir::limiter per_ip("ip", weir::fixed_window{.limit = 60}, counters);
///
/// No script can admit what never fits: limit 0, or a cost over the limit. Keys are the same in
/// each run. Thread-safe.
class scripted_store {
public:
    template <policy Policy>
    struct enrolment {
        weir::digest digest;
    };

    static constexpr bool on_callers_clock = true;

    /// An empty script admits everything.
    explicit scripted_store(std::vector<scripted_answer> script = {},
                            instant (*clock)()                  = &weir::now)
        : script_(std::move(script)), clock_(clock)
    {
    }

    /// Another script, from its first line on; what was asked is kept.
    void rewrite(std::vector<scripted_answer> script);

    /// All asks so far, the first first. A decision may take several: admit_all peeks before it
    /// spends.
    [[nodiscard]] std::vector<recorded_ask> asked() const;

    template <policy Policy>
    enrolment<Policy> enrol(std::string_view name, const Policy& limit, outage_rule = fail_closed)
    {
        return {weir::digest(hash_seed{}, Policy::id, name, limit.window)};
    }
    template <policy Policy>
    [[nodiscard]] key digest(const enrolment<Policy>& limiter, const subject& who) const noexcept
    {
        return limiter.digest(who);
    }
    template <policy Policy>
    [[nodiscard]] bool holds(const enrolment<Policy>&, const Policy&) const noexcept
    {
        return true;
    }
    template <policy Policy>
    reply<Policy> answer(const enrolment<Policy>&, const ask<Policy>& question, instant at);

    [[nodiscard]] instant now() const { return clock_(); }

private:
    scripted_answer next(const recorded_ask& question);

    mutable std::mutex           mutex_;
    std::vector<scripted_answer> script_;
    std::size_t                  line_ = 0;
    std::vector<recorded_ask>    asked_;
    instant (*clock_)();
};

// ---------------------------------------------------------------------------------------------

inline void scripted_store::rewrite(std::vector<scripted_answer> script)
{
    const std::lock_guard turn(mutex_);
    script_ = std::move(script);
    line_   = 0;
}

inline std::vector<recorded_ask> scripted_store::asked() const
{
    const std::lock_guard turn(mutex_);
    return asked_;
}

inline scripted_answer scripted_store::next(const recorded_ask& question)
{
    const std::lock_guard turn(mutex_);
    asked_.push_back(question);
    if (script_.empty()) return {};
    const auto line = line_;
    if (line_ + 1 < script_.size()) ++line_;
    return script_[line];
}

template <policy Policy>
reply<Policy> scripted_store::answer(const enrolment<Policy>&, const ask<Policy>& question,
                                     instant at)
{
    const auto    line = next({question.who, question.verb, question.cost, question.times, at});
    reply<Policy> told{.at = at, .basis = line.basis};
    if (line.verdict == verdict::refused) {
        question.limit.charge(told.after, question.limit.capacity(), at);
    } else if (question.verb == verb::spend) {
        question.limit.charge(told.after, question.cost * question.times, at);
        told.granted = question.times;
    }
    return told;
}

}  // namespace weir::testing
