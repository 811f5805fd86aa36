// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/trip.hpp"

#include <algorithm>
#include <numeric>

namespace weir::remote {

void trip::clear() noexcept
{
    parts_.clear();
    order_.clear();
    table_.fill(0);
    manner_ = nullptr;
    carries = kind::none;
    set     = nullptr;
    tries   = 0;
}

/// Keys are digests: any of their bits will do.
std::uint16_t& trip::bucket_of(const key& who) noexcept
{
    for (auto at = who.high % buckets;; at = (at + 1) % buckets)
        if (table_[at] == 0 || parts_[table_[at] - 1U].asked.who == who) return table_[at];
}

/// A key is in one statement once: another cost, or another deed, comes with a later one.
bool trip::take(seat& one)
{
    auto& bucket = bucket_of(one.asked.who);
    if (bucket == 0) {
        if (parts_.size() == most_rows) return false;
        parts_.push_back({.asked = one.asked});
        parts_.back().asked.times = 0;
        bucket                    = static_cast<std::uint16_t>(parts_.size());
    }
    auto& mine = parts_[bucket - 1U];
    if (!mine.seats.empty() && !mine.asked.merges_with(one.asked)) return false;
    one.place = mine.asked.times;
    mine.asked.times += one.asked.times;
    return true;
}

void trip::fill_with_set(seat& head)
{
    carries = kind::set;
    set     = &head;
    head.at = seat::stage::sent;
    for (const auto* one : head.set) parts_.push_back({.asked = one->asked});
}

bool trip::fill(seats& waiting)
{
    clear();
    auto* const head = waiting.first();
    if (head == nullptr) return false;
    if (!head->set.empty()) {
        waiting.remove(*head);
        fill_with_set(*head);
        return sort(), true;
    }
    carries = kind::ask;
    manner_ = head->asked.manner;
    for (auto* one = head; one != nullptr && parts_.size() <= most_rows;) {
        auto* const next = one->next;
        const bool  fits = one == head || (!one->alone && !head->alone);
        if (fits && one->set.empty() && one->asked.manner == manner_ && take(*one)) {
            waiting.remove(*one);
            parts_[bucket_of(one->asked.who) - 1U].seats.push_back(*one);
            one->at = seat::stage::sent;
        }
        one = next;
    }
    return sort(), true;
}

/// By key; equal keys, which only a set has, in the order in which they were asked for.
void trip::sort()
{
    order_.resize(parts_.size());
    std::iota(order_.begin(), order_.end(), std::uint16_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](auto a, auto b) { return parts_[a].asked.who < parts_[b].asked.who; });
}

}  // namespace weir::remote
