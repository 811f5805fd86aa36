// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calendar caps that one busy source cannot use up: what comes is queued under its source, and gets
// its window when that window is there. A window goes round the sources, one of each, until it is
// full. Whoever sent 200 waits behind himself, and nobody else does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "weir/key.hpp"
#include "weir/policy/calendar.hpp"
#include "weir/policy/calendar_caps.hpp"
#include "weir/time.hpp"

namespace weir {

/// Thread-safe. Memory: at most `most` items.
template <class Item>
class fair_calendar {
public:
    /// Throws std::invalid_argument for caps that have a complaint.
    explicit fair_calendar(const calendar_caps& caps, std::size_t most = 100'000)
        : windows_(caps), most_(most)
    {
    }

    /// Puts `item` behind what waits of `source`. False, and nothing is kept, if `most` wait.
    /// O(log waiting).
    [[nodiscard]] bool enqueue(const key& source, Item item);

    /// What may go at `at`, at most `most` of it: they count in the windows of `at`, and wait no
    /// longer. Ask again every second or so. O(log waiting) for each.
    [[nodiscard]] std::vector<Item>
    release(instant at = weir::now(), std::size_t most = std::numeric_limits<std::size_t>::max());

    [[nodiscard]] std::size_t waiting() const
    {
        const std::lock_guard held(turn_);
        return queue_.size();
    }

private:
    /// The round in which it goes, and the order of arrival in that.
    using turn = std::pair<std::uint64_t, std::uint64_t>;

    calendar                     windows_;
    std::size_t                  most_;
    mutable std::mutex           turn_;
    std::map<turn, Item>         queue_;
    std::map<key, std::uint64_t> last_of_;  // the round of the last item of each source
    std::uint64_t                round_   = 0;
    std::uint64_t                arrived_ = 0;
};

// ---------------------------------------------------------------------------------------------

template <class Item>
bool fair_calendar<Item>::enqueue(const key& source, Item item)
{
    const std::lock_guard held(turn_);
    if (queue_.size() >= most_) return false;
    auto [last, is_new] = last_of_.try_emplace(source, round_);
    if (!is_new) last->second = std::max(last->second + 1, round_);
    queue_.emplace(turn{last->second, ++arrived_}, std::move(item));
    return true;
}

template <class Item>
std::vector<Item> fair_calendar<Item>::release(instant at, std::size_t most)
{
    const std::lock_guard held(turn_);
    std::vector<Item>     gone;
    while (!queue_.empty() && gone.size() < most && windows_.place_now(at)) {
        const auto head = queue_.begin();
        round_          = std::max(round_, head->first.first);
        gone.push_back(std::move(head->second));
        queue_.erase(head);
    }
    // A source whose last round has passed is as good as a new one.
    if (queue_.empty() || last_of_.size() > 2 * queue_.size() + 64)
        std::erase_if(last_of_, [&](const auto& source) { return source.second < round_; });
    return gone;
}

}  // namespace weir
