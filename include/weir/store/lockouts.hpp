// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lockouts in this process: what memory_store keeps of a limiter whose policy is `lockout`. Its
// state is wider than a slot, so it has a table of another kind.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/key.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/store.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/wide_table.hpp"
#include "weir/time.hpp"

namespace weir {

/// Thread-safe. About 170 bytes for each of `max_keys`. With
/// `overflow::refuse` a key for which there is no room is refused, as if the store were away.
template <>
class memory_counters<lockout> {
public:
    memory_counters(std::string_view name, const lockout& limit, const memory_options& options,
                    const hash_seed& seed)
        : digest_(seed, lockout::id, name, limit.window),
          table_(options.max_keys, options.overflow == overflow::sketch)
    {
    }

    [[nodiscard]] key digest(const subject& who) const noexcept { return digest_(who); }
    void              prefetch(const key& who) const noexcept { table_.prefetch(who); }

    /// O(failures).
    reply<lockout> answer(const ask<lockout>& question, instant at) noexcept;

    /// All states, for an operator: `visit(key, state)`, under the lock of the state's bucket.
    template <class Visit>
    void for_each(Visit&& visit) const
    {
        table_.for_each(visit);
    }

    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this) + table_.bytes(); }

private:
    /// What others share is never made less.
    static bool adds(verb what) noexcept { return what == verb::spend || what == verb::charge; }
    static bool change(const ask<lockout>& question, lockout::state& s, std::uint64_t& granted,
                       instant at) noexcept;

    weir::digest        digest_;
    wide_table<lockout> table_;
};

/// A slot of the other tables need not hold it.
[[nodiscard]] constexpr bool fits_slot(const lockout&) noexcept { return true; }
inline void                  check_slot(std::string_view, const lockout&) noexcept {}

/// For an outage rule of `local`: see remote/outage.hpp.
[[nodiscard]] constexpr lockout share_of(lockout limit, std::uint32_t processes) noexcept
{
    limit.failures = std::max<std::uint64_t>(limit.failures / std::max(processes, 1U), 1);
    limit.grain    = try_log::step_of(limit.window, limit.failures);
    return limit;
}

/// What a process alone has closed is shown as closed, until the same instant.
[[nodiscard]] constexpr lockout::state shown(const lockout& limit, const lockout& share,
                                             const lockout::state& state, std::uint64_t cost,
                                             instant at) noexcept
{
    const auto seen = share.read(state, cost, at);
    auto       made = state;
    if (share.look(state, at).locked) {
        constexpr std::uint64_t places_and_packing = 31 | 31 << 10;
        made.rest = (state.rest & ~places_and_packing) | limit.failures;
    } else {
        made = {};
        limit.charge(made, limit.failures - seen.left, at);
    }
    return made;
}

// ---------------------------------------------------------------------------------------------

inline bool memory_counters<lockout>::change(const ask<lockout>& question, lockout::state& s,
                                             std::uint64_t& granted, instant at) noexcept
{
    const auto before = s;
    const auto tries  = question.cost * question.times;
    switch (question.verb) {
    case verb::spend:
        granted = question.limit.spend(s, question.cost, question.times, at);
        return granted > 0;
    case verb::charge:
        question.limit.charge(s, tries, at);
        break;
    case verb::give_back:
        question.limit.give_back(s, tries, question.lapses, at);
        break;
    case verb::forget:
        s = {};
        break;
    case verb::peek:
        break;
    }
    return !(s == before);
}

inline reply<lockout> memory_counters<lockout>::answer(const ask<lockout>& question,
                                                       instant             at) noexcept
{
    std::uint64_t granted = 0;
    const auto    done =
        table_.update(question.limit, question.who, at, [&](lockout::state& s, bool own) {
            return (own || adds(question.verb)) && change(question, s, granted, at);
        });
    if (done.no_room) return {.at = at, .basis = basis::store_unavailable};
    return {granted, done.after, question.limit.judged_at(done.after, at),
            done.estimated ? basis::estimated : basis::counted};
}

}  // namespace weir
