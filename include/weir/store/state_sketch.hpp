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

/// The estimate of a key is the best of its cells, and each cell is at least as bad as the truth, so
/// a limiter on it never admits more than its policy allows; what it refuses in excess is bounded by
/// `sketch_size::wrong_share`. Updates are conservative. Thread-safe, lock-free, O(depth).
template <policy Policy>
class state_sketch {
public:
    using state = typename Policy::state;

    state_sketch(const Policy& limit, sketch_size size) : packing_(limit), size_(size), cells_(size.width * size.depth) {}

    /// Runs the ask on the estimate. give_back and forget do nothing: a cell may be another key's.
    reply<Policy> answer(const ask<Policy>& question, instant at) noexcept;

    /// What the sketch knows of a key: untouched, or worse than it is.
    [[nodiscard]] state estimate(const Policy& limit, const key& who, instant at) const noexcept;

    /// The share of keys that are over-counted at present, from the share of cells in use.
    [[nodiscard]] double present_error(const Policy& limit, instant at) const noexcept;

    [[nodiscard]] const sketch_size& size() const noexcept { return size_; }
    [[nodiscard]] std::size_t        bytes() const noexcept { return sizeof(*this) + cells_.bytes(); }

private:
    reply<Policy> spend(const ask<Policy>& question, instant at) noexcept;
    reply<Policy> charge(const ask<Policy>& question, instant at) noexcept;
    void          raise(const Policy& limit, const key& who, const state& to, instant at) noexcept;
    reply<Policy> told(const Policy& limit, std::uint64_t granted, const state& after, instant at) const noexcept
    {
        return {granted, after, limit.judged_at(after, at), basis::estimated};
    }

    packing<Policy> packing_;
    sketch_size     size_;
    pages<slot>     cells_;
    under_way       raising_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
auto state_sketch<Policy>::estimate(const Policy& limit, const key& who, instant at) const noexcept -> state
{
    const auto now  = packing_.at(at);
    auto       best = packing_.unpack(peek(cells_[size_.cell(who, 0)]), now);
    for (std::size_t row = 1; row < size_.depth; ++row)
        best = limit.better(best, packing_.unpack(peek(cells_[size_.cell(who, row)]), now));
    return best;
}

template <policy Policy>
reply<Policy> state_sketch<Policy>::answer(const ask<Policy>& question, instant at) noexcept
{
    if (question.verb == verb::spend) return spend(question, at);
    if (question.verb == verb::charge) return charge(question, at);
    return told(question.limit, 0, estimate(question.limit, question.who, at), at);
}

template <policy Policy>
reply<Policy> state_sketch<Policy>::spend(const ask<Policy>& question, instant at) noexcept
{
    // Whoever is refused only because of others under way looks again; they end without waiting.
    constexpr int patience = 64;
    const auto&   limit    = question.limit;
    const auto    units    = question.cost * question.times;
    for (int tries = 0;; ++tries) {
        const auto ahead  = raising_.announce(question.who, units) - units;
        const auto before = estimate(limit, question.who, at);
        auto       after  = before;
        if (ahead > 0) limit.charge(after, ahead, at);
        const auto granted = limit.spend(after, question.cost, question.times, at);
        if (granted > 0) raise(limit, question.who, after, at);
        raising_.end(question.who, units);

        if (granted > 0) return told(limit, granted, after, at);
        if (ahead == 0 || tries == patience || !limit.read(before, question.cost, at).fits)
            return told(limit, 0, before, at);
    }
}

template <policy Policy>
reply<Policy> state_sketch<Policy>::charge(const ask<Policy>& question, instant at) noexcept
{
    const auto units = question.cost * question.times;
    const auto ahead = raising_.announce(question.who, units) - units;
    auto       after = estimate(question.limit, question.who, at);
    if (ahead > 0) question.limit.charge(after, ahead, at);
    question.limit.charge(after, units, at);
    raise(question.limit, question.who, after, at);
    raising_.end(question.who, units);
    return told(question.limit, 0, after, at);
}

template <policy Policy>
void state_sketch<Policy>::raise(const Policy& limit, const key& who, const state& to, instant at) noexcept
{
    const auto now = packing_.at(at);
    for (std::size_t row = 0; row < size_.depth; ++row) {
        auto& cell = cells_[size_.cell(who, row)];
        for (;;) {
            const auto seen = peek(cell);
            const auto next = packing_.pack(limit.worse(packing_.unpack(seen, now), to), now);
            if (next == seen || swap(cell, seen, next)) break;
        }
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
            used += limit.recovered_at(packing_.unpack(peek(cells_[row * size_.width + i]), now)) > at;
        error *= static_cast<double>(used) / static_cast<double>(size_.width);
    }
    return error;
}

}  // namespace weir
