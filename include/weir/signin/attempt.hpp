// SPDX-License-Identifier: BSL-1.0
#pragma once

// A try that was claimed before any work is done for it, and whose outcome is told later.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/decision.hpp"
#include "weir/pending.hpp"
#include "weir/time.hpp"

namespace weir {

/// What a guard's `claim` returns. It counts as a failure from then on: `succeeded` takes it back,
/// `failed` or nothing leaves it, so a crash is a failure too. The destructor does nothing.
///
///     auto attempt = guard.claim(client);
///     if (!attempt) return weir::refuse(request, response, attempt.decision());
///     if (!check(request)) return attempt.failed(), …;
///     attempt.succeeded();
///
/// One thread at a time; must not outlive the guard.
class [[nodiscard]] attempt {
public:
    /// How a guard clears a key that has succeeded, all of its failures and its level.
    struct clearing {
        void (*run)(const void* guard, const pending& part, std::size_t nth,
                    instant at) noexcept = nullptr;
        const void* guard                = nullptr;
    };

    /// Of one part that `make()` returns, spent here and now; or of several that were.
    template <class Make>
    attempt(Make&& make, instant at, clearing then) noexcept : only_(make()), then_(then)
    {
        only_.run_step(pending::step::spend, at);
    }
    attempt(std::vector<pending> parts, const joint_decision& made, clearing then)
        : only_({}, {}, 0, {}, nothing), then_(then),
          several_(std::make_unique<set>(set{std::move(parts), made}))
    {
    }
    attempt(attempt&&) noexcept            = default;
    attempt& operator=(attempt&&) noexcept = default;

    /// Whether the try may be made.
    [[nodiscard]] explicit operator bool() const noexcept { return bool(decision()); }

    /// Its names borrow from the guard. `left` of an admitted one: tries that are left besides it.
    [[nodiscard]] const weir::decision& decision() const noexcept
    {
        return several_ ? several_->made : only_.made();
    }

    /// Takes the claimed place back, or clears the key where the guard says so. Asks the store, at
    /// the instant given where that keeps the caller's time. Nothing happens for a refused attempt,
    /// after an outcome, and once `outcome_within` has passed. Never throws.
    void succeeded(instant at) noexcept;
    void succeeded() noexcept { end(std::nullopt); }

    /// The place stays taken; asks nobody. If it was the last one it tells when the door opens
    /// again: the lockout runs since this attempt's claim. (A success of another attempt that was
    /// claimed before may still open it.)
    std::optional<instant> failed() noexcept;

private:
    void end(std::optional<instant> at) noexcept;
    template <class Visit>
    void each(Visit&& visit);

    struct set {
        std::vector<pending> parts;
        joint_decision       made;
    };
    static constexpr pending::steps nothing = {};

    pending              only_;
    clearing             then_;
    std::unique_ptr<set> several_;  // null: only_
    bool                 over_ = false;
};

// ---------------------------------------------------------------------------------------------

template <class Visit>
void attempt::each(Visit&& visit)
{
    std::size_t nth = 0;
    if (!several_) return visit(only_, nth);
    for (const auto& one : several_->parts) visit(one, nth++);
}

inline void attempt::end(std::optional<instant> at) noexcept
{
    if (!*this || std::exchange(over_, true)) return;
    each([&](const pending& one, std::size_t nth) {
        const auto then = at ? *at : one.takes_instant() ? one.present() : instant();
        if (then_.run != nullptr) then_.run(then_.guard, one, nth, then);
        else one.run_step(pending::step::undo, then);
    });
}

inline void attempt::succeeded(instant at) noexcept { end(at); }

inline std::optional<instant> attempt::failed() noexcept
{
    std::optional<instant> opens;
    if (!*this || std::exchange(over_, true)) return opens;
    each([&](const pending& one, std::size_t) {
        const auto& made = one.made();
        if (made.left > 0 || made.basis >= basis::store_unavailable) return;
        opens = std::max(opens, std::optional(saturating_add(made.at, made.reset_after)));
    });
    return opens;
}

}  // namespace weir
