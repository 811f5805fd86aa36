// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tokens that were used, in the memory of one process: each passes once.
//
//     if (spent.spend(token.id, token.expires) != weir::token_use::first) return hand_back(form);
//
// Spend last, when all else was found good, so that a form that is handed back does not burn it.
// Where a row is written, the backend's spent_tokens spends in that row's transaction.

#include <cstddef>
#include <mutex>
#include <set>
#include <utility>

#include "weir/key.hpp"
#include "weir/time.hpp"
#include "weir/token_use.hpp"

namespace weir {

/// Thread-safe. Memory: at most `most` tokens, here in one part.
class spent_tokens {
public:
    /// Throws std::invalid_argument if `most` is out of range.
    explicit spent_tokens(const spent_token_options& options = {}) : most_(options.most)
    {
        detail::check(options);
    }

    /// `first` for one caller of all that ever bring `id`. Where there is no room, `full`: nothing
    /// that could still pass is forgotten. O(log most).
    [[nodiscard]] token_use spend(const key& id, instant expires, instant at = weir::now())
    {
        const std::lock_guard held(turn_);
        forget_before(saturating_add(at, -detail::token_grace));
        if (used_.contains(id)) return token_use::again;
        if (used_.size() >= most_) return token_use::full;
        used_.emplace(id);
        by_expiry_.emplace(expires, id);
        return token_use::first;
    }

    /// Makes a token as if it was not used, once: what it was spent for came to nothing.
    void give_back(const key& id, instant expires)
    {
        const std::lock_guard held(turn_);
        if (by_expiry_.erase({expires, id}) == 1) used_.erase(id);
    }

    [[nodiscard]] std::size_t size() const
    {
        const std::lock_guard held(turn_);
        return used_.size();
    }

private:
    void forget_before(instant cutoff)
    {
        while (!by_expiry_.empty() && by_expiry_.begin()->first < cutoff) {
            used_.erase(by_expiry_.begin()->second);
            by_expiry_.erase(by_expiry_.begin());
        }
    }

    std::size_t                       most_;
    mutable std::mutex                turn_;
    std::set<key>                     used_;
    std::set<std::pair<instant, key>> by_expiry_;
};

}  // namespace weir
