// SPDX-License-Identifier: BSL-1.0
#pragma once

// Where an ask lies between its caller and a connection.

#include <chrono>
#include <cstdint>
#include <span>

#include "weir/remote/bell.hpp"
#include "weir/remote/row.hpp"

namespace weir::remote {

/// Owned by the caller; linked into a line's lists, and touched by others, only while it is under
/// way there and under the line's lock. Not thread-safe by itself.
struct seat {
    using time_point = std::chrono::steady_clock::time_point;
    enum class stage : std::uint8_t { apart, waiting, sent, done };

    row                    asked = {};
    std::span<seat* const> set   = {};  ///< Not an ask itself: these are, together, all or nothing.
    time_point             until = {};  ///< When the caller goes without an answer.

    bool            answered = false;
    remote::outcome said     = {};
    std::int64_t    place    = 0;  ///< How many callers of its row come before those of this ask.

    /// Run on the thread that serves the line, once the seat is done; null: `rung` is rung.
    void (*complete)(seat&) noexcept = nullptr;
    bell rung;

    seat::stage at     = stage::apart;
    bool        alone  = false;  ///< It shares no statement with others: theirs failed with it.
    seat*       before = nullptr;
    seat*       next   = nullptr;
};

/// Seats in the order of their coming. They link themselves: no call allocates. Each is O(1).
class seats {
public:
    [[nodiscard]] bool  empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] seat* first() const noexcept { return first_; }

    void push_back(seat& one) noexcept { insert(one, last_, nullptr); }
    void push_front(seat& one) noexcept { insert(one, nullptr, first_); }

    void remove(seat& one) noexcept
    {
        (one.before ? one.before->next : first_) = one.next;
        (one.next ? one.next->before : last_)    = one.before;
        one.before = one.next = nullptr;
    }

private:
    void insert(seat& one, seat* before, seat* next) noexcept
    {
        one.before                       = before;
        one.next                         = next;
        (before ? before->next : first_) = &one;
        (next ? next->before : last_)    = &one;
    }

    seat* first_ = nullptr;
    seat* last_  = nullptr;
};

}  // namespace weir::remote
