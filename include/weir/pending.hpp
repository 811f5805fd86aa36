// SPDX-License-Identifier: BSL-1.0
#pragma once

// One limiter's part in a set that is admitted as a whole (see admit_all.hpp).

#include <cstdint>

#include "weir/decision.hpp"
#include "weir/key.hpp"

namespace weir {

/// What `limiter(who, {.cost = n})` makes for `admit_all`: which limiter, which key, how much. The
/// subject is digested already, so only the limiter is borrowed. Not thread-safe; used once.
class pending {
public:
    enum class step : std::uint8_t { peek, spend, undo };

    /// Runs one step on the limiter behind `self`; `made` is what an undo takes back.
    using run = decision (*)(const void* self, const key& who, std::uint64_t cost, step act,
                             const decision& made, instant at) noexcept;

    /// Reads the clock of the store that the limiter is on.
    using clock = instant (*)(const void* self) noexcept;

    pending(const void* self, const key& who, std::uint64_t cost, run ask, clock look) noexcept
        : self_(self), who_(who), cost_(cost), ask_(ask), present_(look)
    {
    }
    pending(const pending&)            = delete;
    pending& operator=(const pending&) = delete;
    pending(pending&&)                 = default;  // so that a computed set can be kept in a vector
    pending& operator=(pending&&)      = default;

    /// The order in which everybody spends, so that two sets never wait or undo in a circle.
    [[nodiscard]] const key& who() const noexcept { return who_; }

    [[nodiscard]] instant present() const noexcept { return present_(self_); }

    /// What the last step decided.
    const decision& made() const noexcept { return made_; }

    const decision& run_step(step act, instant at) const noexcept
    {
        return made_ = ask_(self_, who_, cost_, act, made_, at);
    }

private:
    const void*      self_;
    key              who_;
    std::uint64_t    cost_;
    run              ask_;
    clock            present_;
    mutable decision made_;  // the elements of an initializer_list are const
};

}  // namespace weir
