// SPDX-License-Identifier: BSL-1.0
#pragma once

// One limiter's part in a set that is admitted as a whole (see admit_all.hpp).

#include <cstdint>
#include <span>

#include "weir/decision.hpp"
#include "weir/key.hpp"

namespace weir {

/// What `limiter(who, {.cost = n})` makes for `admit_all`: which limiter, which key, how much. The
/// subject is digested already, so only the limiter is borrowed. Not thread-safe; used once.
class pending {
public:
    enum class step : std::uint8_t { peek, spend, undo };

    /// How the limiter behind `self` takes its part; one table for each type of limiter.
    struct steps {
        /// Runs one step; `made` is what an undo takes back.
        decision (*run)(const void* self, const key& who, std::uint64_t cost, step act,
                        const decision& made, instant at) noexcept = nullptr;

        /// Reads the clock of the store; null where the instant of a set is not for this limiter.
        instant (*present)(const void* self) noexcept = nullptr;

        /// Hands a whole set to the store; null, as all below, where the store takes none.
        void (*admit_set)(void* store, std::span<const pending> set) noexcept = nullptr;

        bool (*never_fits)(const void* self, std::uint64_t cost) noexcept = nullptr;
        void (*stage)(const void* self, const key& who, std::uint64_t cost,
                      void* slot) noexcept                                = nullptr;
        decision (*resolve)(const void* self, const key& who, std::uint64_t cost, const void* slot,
                            bool spent) noexcept                          = nullptr;
    };

    pending(const void* self, const key& who, std::uint64_t cost, void* store,
            const steps& how) noexcept
        : self_(self), who_(who), cost_(cost), store_(store), how_(&how)
    {
    }
    pending(const pending&)            = delete;
    pending& operator=(const pending&) = delete;
    pending(pending&&)                 = default;  // so that a computed set can be kept in a vector
    pending& operator=(pending&&)      = default;

    /// The order in which everybody spends, so that two sets never wait or undo in a circle.
    [[nodiscard]] const key& who() const noexcept { return who_; }

    /// Whether the instant of a set counts here: it does where the store keeps the caller's time.
    [[nodiscard]] bool    takes_instant() const noexcept { return how_->present != nullptr; }
    [[nodiscard]] instant present() const noexcept { return how_->present(self_); }

    /// What the last step decided.
    const decision& made() const noexcept { return made_; }

    const decision& run_step(step act, instant at) const noexcept
    {
        return made_ = how_->run(self_, who_, cost_, act, made_, at);
    }

    /// Whether both are on one store that takes sets as a whole.
    [[nodiscard]] bool shares_store(const pending& other) const noexcept
    {
        return store_ == other.store_ && how_->admit_set != nullptr &&
               how_->admit_set == other.how_->admit_set;
    }

    /// For asks of one store that takes sets: whether no wait makes this one fit, and the set
    /// whole.
    [[nodiscard]] bool takes_nothing() const noexcept { return cost_ == 0; }
    [[nodiscard]] bool never_fits() const noexcept { return how_->never_fits(self_, cost_); }
    void admit_set(std::span<const pending> set) const noexcept { how_->admit_set(store_, set); }

    /// For that store: writes the ask into a `staged` of its own.
    void stage(void* slot) const noexcept { how_->stage(self_, who_, cost_, slot); }

    /// For that store: decides by what the slot holds now. `spent` where the store tried to spend;
    /// false where the ask would have fitted and another one refused the set: then the reply counts
    /// as that to a look.
    const decision& resolve(const void* slot, bool spent) const noexcept
    {
        return made_ = how_->resolve(self_, who_, cost_, slot, spent);
    }

private:
    const void*      self_;
    key              who_;
    std::uint64_t    cost_;
    void*            store_;
    const steps*     how_;
    mutable decision made_;  // the elements of an initializer_list are const
};

}  // namespace weir
