// SPDX-License-Identifier: BSL-1.0
#pragma once

// Keys whose rows somebody else holds locked. Each ask for one makes all that share its statement
// wait, and those behind: so for a while nobody waits for them, and then one, alone.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/key.hpp"

namespace weir::remote {

/// Not thread-safe. Knows the last eight; of more than that some are waited for again. O(1).
class held_keys {
public:
    using time_point = std::chrono::steady_clock::time_point;

    static constexpr std::chrono::milliseconds pause{500};

    enum class way : std::uint8_t { free, alone, not_now };

    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

    /// How an ask for `who` may go. The one that is told `alone` finds out; the next one may after
    /// another pause.
    way look(const key& who, time_point at) noexcept;

    /// A statement for nothing but `who` gave up waiting.
    void add(const key& who, time_point at) noexcept;

    /// One was answered.
    void drop(const key& who) noexcept;

private:
    struct held {
        key        who   = {};
        time_point until = {};
    };

    held* find(const key& who) noexcept
    {
        const auto some  = std::span(known_).first(count_);
        const auto found = std::ranges::find(some, who, &held::who);
        return found == some.end() ? nullptr : &*found;
    }

    std::array<held, 8> known_ = {};
    std::size_t         count_ = 0;
    std::size_t         next_  = 0;  // to be forgotten for another one
};

// ---------------------------------------------------------------------------------------------

inline held_keys::way held_keys::look(const key& who, time_point at) noexcept
{
    auto* const known = find(who);
    if (known == nullptr) return way::free;
    if (at < known->until) return way::not_now;
    known->until = at + pause;
    return way::alone;
}

inline void held_keys::add(const key& who, time_point at) noexcept
{
    auto* place = find(who);
    if (place == nullptr)
        place = count_ < known_.size() ? &known_[count_++] : &known_[next_++ % known_.size()];
    *place = {who, at + pause};
}

inline void held_keys::drop(const key& who) noexcept
{
    if (auto* const known = find(who)) *known = known_[--count_];
}

}  // namespace weir::remote
