// SPDX-License-Identifier: BSL-1.0
#pragma once

// A cost that is known only afterwards: take an estimate now, settle the difference later.

#include <concepts>
#include <cstdint>

#include "weir/decision.hpp"
#include "weir/key.hpp"

namespace weir {

/// What a reservation takes at first.
struct reserving {
    std::uint64_t estimate = 1;  ///< Units.
};

/// What `limiter.reserve` made: true if the estimate was admitted. Dropped unsettled, the estimate
/// stands. It borrows the limiter. Move-only; not thread-safe.
template <class Limiter>
class [[nodiscard]] reservation {
public:
    reservation(const Limiter& limiter, const key& who, const weir::decision& made) noexcept
        : limiter_(&limiter), who_(who), made_(made), open_(bool(made))
    {
    }
    reservation(reservation&& other) noexcept
        : limiter_(other.limiter_), who_(other.who_), made_(other.made_), open_(other.open_)
    {
        other.open_ = false;
    }
    reservation& operator=(reservation&& other) noexcept
    {
        limiter_ = other.limiter_, who_ = other.who_, made_ = other.made_, open_ = other.open_;
        other.open_ = false;
        return *this;
    }

    explicit              operator bool() const noexcept { return bool(made_); }
    const weir::decision& decision() const noexcept { return made_; }

    /// What it cost in the end, in units. More than the estimate is charged now, debt or not; what
    /// is left over is put back unless the charged window is over. Once: a second call does
    /// nothing. On a store with a clock of its own it takes no instant.
    void settle(std::uint64_t actual) noexcept { settle(actual, limiter_->present()); }
    void settle(std::uint64_t actual, std::same_as<typename Limiter::moment> auto at) noexcept
    {
        if (!open_) return;
        open_ = false;
        if (actual > made_.cost) limiter_->charge(who_, {actual - made_.cost}, at);
        else limiter_->asks_.put_back(who_, made_, made_.cost - actual, at);
    }

private:
    const Limiter* limiter_;
    key            who_;
    weir::decision made_;
    bool           open_;
};

}  // namespace weir
