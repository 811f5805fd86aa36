// SPDX-License-Identifier: BSL-1.0
#pragma once

// A count-min sketch whose cells are states of a policy: any policy can be asked through it.

#include <cstddef>
#include <cstdint>

#include "weir/count_min_sketch.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/store.hpp"
#include "weir/store/packing.hpp"
#include "weir/pages.hpp"
#include "weir/store/slot.hpp"

namespace weir {

/// The estimate of a key is the lightest of its cells, and each cell is at least as bad as the
/// truth, so a limiter on it never admits more than its policy allows; what it refuses in excess is
/// bounded by `sketch_size::wrong_share`. Updates are conservative and lose nothing between
/// threads, for the reason given at `count_min_sketch`. Thread-safe, lock-free, O(depth).
template <policy Policy>
class state_sketch {
public:
    using state = typename Policy::state;

    state_sketch(const Policy& limit, sketch_size size)
        : packing_(limit), size_(size), cells_(size.width * size.depth)
    {
    }

    /// Runs the ask on the estimate. give_back and forget do nothing: a cell may be another key's.
    [[gnu::flatten]] reply<Policy> answer(const ask<Policy>& question, instant at) noexcept;

    /// What the sketch knows of a key: untouched, or worse than it is.
    [[nodiscard]] state estimate(const Policy& limit, const key& who, instant at) const noexcept
    {
        return lightest(limit, who, packing_.at(at)).holds;
    }

    /// The share of keys that are over-counted at present, from the share of cells in use.
    [[nodiscard]] double present_error(const Policy& limit, instant at) const noexcept;

    [[nodiscard]] const sketch_size& size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this) + cells_.bytes(); }

private:
    /// The cell that an update starts from.
    struct base {
        std::size_t row;
        slot        is;
        state       holds;
    };

    [[nodiscard]] base lightest(const Policy& limit, const key& who,
                                const grid& now) const noexcept;
    bool commit(const Policy& limit, const key& who, const base& from, const state& to,
                const grid& now) noexcept;
    void raise(const Policy& limit, slot& cell, const state& to, const grid& now) noexcept;

    packing<Policy> packing_;
    sketch_size     size_;
    pages<slot>     cells_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
auto state_sketch<Policy>::lightest(const Policy& limit, const key& who,
                                    const grid& now) const noexcept -> base
{
    const auto at = [&](std::size_t row) -> base {
        const auto is = peek(cells_[size_.cell(who, row)]);
        return {row, is, packing_.unpack(is, now)};
    };
    auto best = at(0);
    for (std::size_t row = 1; row < size_.depth; ++row)
        if (const auto next = at(row); limit.lighter(next.holds, best.holds)) best = next;
    return best;
}

template <policy Policy>
reply<Policy> state_sketch<Policy>::answer(const ask<Policy>& question, instant at) noexcept
{
    const auto& limit = question.limit;
    const auto  now   = packing_.at(at);
    for (;;) {
        const auto    from    = lightest(limit, question.who, now);
        auto          to      = from.holds;
        std::uint64_t granted = 0;
        if (question.verb == verb::spend)
            granted = limit.spend(to, question.cost, question.times, at);
        if (question.verb == verb::charge) limit.charge(to, question.cost * question.times, at);
        if (to == from.holds || commit(limit, question.who, from, to, now))
            return {granted, to, limit.judged_at(to, at), basis::estimated};
    }
}

/// The other cells first; false if the base was not the same any more.
template <policy Policy>
bool state_sketch<Policy>::commit(const Policy& limit, const key& who, const base& from,
                                  const state& to, const grid& now) noexcept
{
    for (std::size_t row = 0; row < size_.depth; ++row)
        if (row != from.row) raise(limit, cells_[size_.cell(who, row)], to, now);
    return swap(cells_[size_.cell(who, from.row)], from.is, packing_.pack(to, now));
}

template <policy Policy>
void state_sketch<Policy>::raise(const Policy& limit, slot& cell, const state& to,
                                 const grid& now) noexcept
{
    for (;;) {
        const auto seen = peek(cell);
        const auto next = packing_.pack(limit.worse(packing_.unpack(seen, now), to), now);
        if (next == seen || swap(cell, seen, next)) return;
    }
}

template <policy Policy>
double state_sketch<Policy>::present_error(const Policy& limit, instant at) const noexcept
{
    const auto now   = packing_.at(at);
    double     error = 1;
    for (std::size_t row = 0; row < size_.depth; ++row) {
        std::size_t used = 0;
        for (std::size_t i = 0; i < size_.width; ++i)
            used +=
                limit.recovered_at(packing_.unpack(peek(cells_[row * size_.width + i]), now)) > at;
        error *= static_cast<double>(used) / static_cast<double>(size_.width);
    }
    return error;
}

}  // namespace weir
