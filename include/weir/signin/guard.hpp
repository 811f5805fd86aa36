// SPDX-License-Identifier: BSL-1.0
#pragma once

// Guards what can be guessed: a claim before each try, growing lockouts after too many failures.
//
//     weir::guard door("signin", weir::lockout{.failures = 5, .window = 15min}, counters);
//     auto attempt = door.claim(client);

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/key.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/signin/attempt.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir {

/// What a success of a key makes undone.
enum class success_clears : std::uint8_t {
    place,       ///< Its own claim.
    everything,  ///< All failures of the key, and its level: only where a key is one person.
};

struct guard_options {
    outage_rule on_outage = fail_closed;  ///< While the store does not answer.
    /// Wider windows beside the first, such as {.failures = 20, .window = 24h, .first = 24h}: a try
    /// needs a place in each, all or none.
    std::vector<lockout> tiers   = {};
    success_clears       success = success_clears::place;
};

/// A key whose door is closed.
struct locked_key {
    key           who     = {};  ///< Its digest: `clear` takes it.
    std::size_t   tier    = 0;   ///< 0 is the first window.
    std::uint64_t level   = 0;   ///< How often this lockout was doubled.
    instant       until   = {};
    instant       firm_at = {};  ///< Until then a success of a claimed try may open it.
};

/// Thread-safe. Borrows its store; attempts borrow it, and it stays where it is. Claims and
/// outcomes never throw; a store that is away is a decision, by the outage rule. They take an
/// instant as their last argument where the store keeps the caller's time, and else none.
template <class Store>
class guard {
public:
    using moment = moment_of<Store>;

    /// Throws std::invalid_argument for numbers that the policy or the store cannot hold.
    guard(std::string_view name, const lockout& limit, Store& store, guard_options options = {});
    guard(const guard&)            = delete;
    guard& operator=(const guard&) = delete;

    /// Claims a try of a key, in one atomic step: refused while the door is closed, and then it
    /// counts nowhere. O(tiers). With tiers it allocates, and ends the program without memory.
    template <identity Who>
    attempt claim(const Who& who, moment_for<Store> auto at) const noexcept;
    template <identity Who>
    attempt claim(const Who& who) const noexcept
    {
        const auto& first = doors_.front();
        if (doors_.size() > 1) return claim(who, first.present());
        const auto key = digest(who);
        first.prefetch(key);  // the clock is read meanwhile
        return claim(key, first.present());
    }

    /// Adds this guard's part of a claim over several guards and limiters (see `sign_in`).
    template <identity Who>
    void claim_into(std::vector<pending>& parts, const Who& who) const
    {
        for (const auto& tier : doors_) parts.push_back(tier.limit(who));
    }

    /// How a key stands in a tier, claims nothing. None where the store is away.
    template <identity Who>
    [[nodiscard]] std::optional<lockout::standing> look(const Who& who, moment at,
                                                        std::size_t tier = 0) const noexcept;
    template <identity Who>
    [[nodiscard]] std::optional<lockout::standing> look(const Who& who) const noexcept
    {
        return look(who, doors_.front().present());
    }

    /// The operator's reset of one key in all tiers: failures, lockout, level. A digest out of
    /// `locked` clears its tier. False where the store is away or only estimates the key.
    template <identity Who>
    bool clear(const Who& who) const noexcept;

    /// Who is locked out now. Reads all counters of the store, for an operator; may wait, up to the
    /// store's patience. None where the store is away. Throws std::bad_alloc.
    [[nodiscard]] std::optional<std::vector<locked_key>> locked() const;

    [[nodiscard]] const std::string& name() const noexcept { return doors_.front().limit.name(); }
    [[nodiscard]] std::size_t        tiers() const noexcept { return doors_.size(); }
    [[nodiscard]] lockout            limit(std::size_t tier = 0) const noexcept
    {
        return doors_[tier].limit.limit();
    }

    /// The key of a subject in a tier, as `locked` names it.
    template <identity Who>
    [[nodiscard]] key digest(const Who& who, std::size_t tier = 0) const noexcept
    {
        return doors_[tier].limit.digest(who);
    }

private:
    struct door {
        door(const std::string& name, const lockout& numbers, Store& in, outage_rule on_outage)
            : limit(name, marked(numbers, name), in, {.on_outage = on_outage}), store(&in),
              enrolment(in.enrol(name, limit.limit(), on_outage))
        {
        }
        [[nodiscard]] moment present() const noexcept
        {
            if constexpr (Store::on_callers_clock) return store->now();
            else return {};
        }

        void prefetch([[maybe_unused]] const key& who) const noexcept
        {
            if constexpr (requires { store->prefetch(enrolment, who); })
                store->prefetch(enrolment, who);
        }

        limiter<lockout, Store>                     limit;
        Store*                                      store;
        typename Store::template enrolment<lockout> enrolment;
    };

    static lockout marked(lockout numbers, std::string_view name) noexcept;
    static instant judged(const reply<lockout>& said, [[maybe_unused]] moment at) noexcept
    {
        if constexpr (Store::on_callers_clock) return at;
        else return said.asked;
    }
    static void clear_part(const void* self, const pending& part, std::size_t nth,
                           instant at) noexcept;

    attempt::clearing clearing() const noexcept
    {
        if (success_ == success_clears::place) return {};
        return {&clear_part, this};
    }

    std::deque<door> doors_;  // one for each tier; a limiter stays where it is
    success_clears   success_;
};

// ---------------------------------------------------------------------------------------------

/// The same in all processes, so that each finds the rows of all.
template <class Store>
lockout guard<Store>::marked(lockout numbers, std::string_view name) noexcept
{
    const auto hash = sip_hash(hash_seed{}).feed(name).finish();
    numbers.mark    = static_cast<std::uint16_t>(hash.low % lockout::marks);
    return numbers;
}

template <class Store>
guard<Store>::guard(std::string_view name, const lockout& limit, Store& store,
                    guard_options options)
    : success_(options.success)
{
    doors_.emplace_back(std::string(name), limit, store, options.on_outage);
    for (const auto& tier : options.tiers)
        doors_.emplace_back(std::string(name) + "/" + std::to_string(doors_.size() + 1), tier,
                            store, options.on_outage);
}

template <class Store>
template <identity Who>
attempt guard<Store>::claim(const Who& who, moment_for<Store> auto at) const noexcept
{
    instant then = {};
    if constexpr (Store::on_callers_clock) then = at;
    if (doors_.size() == 1)
        return attempt([&] { return doors_.front().limit(who); }, then, clearing());
    std::vector<pending> parts;
    parts.reserve(doors_.size());
    claim_into(parts, who);
    const auto made = admit_all(parts, then);
    return {std::move(parts), made, clearing()};
}

template <class Store>
void guard<Store>::clear_part(const void* self, const pending& part, std::size_t nth,
                              [[maybe_unused]] instant at) noexcept
{
    const auto& limit = static_cast<const guard*>(self)->doors_[nth].limit;
    if constexpr (Store::on_callers_clock) limit.forget(part.who(), at);
    else limit.forget(part.who());
}

template <class Store>
template <identity Who>
std::optional<lockout::standing> guard<Store>::look(const Who& who, moment at,
                                                    std::size_t tier) const noexcept
{
    const auto& one  = doors_[tier].limit;
    const auto  said = one.inspect(who, at);
    if (said.basis >= basis::local) return std::nullopt;
    return one.limit().look(said.after, judged(said, at));
}

template <class Store>
template <identity Who>
bool guard<Store>::clear(const Who& who) const noexcept
{
    bool all = true;
    for (const auto& tier : doors_) all &= tier.limit.forget(who);
    return all;
}

template <class Store>
std::optional<std::vector<locked_key>> guard<Store>::locked() const
{
    std::vector<locked_key> found;
    for (std::size_t tier = 0; tier < doors_.size(); ++tier) {
        const auto& one   = doors_[tier];
        const auto  limit = one.limit.limit();
        const auto  visit = [&](const key& who, const lockout::state& state, instant at) {
            const auto seen = limit.look(state, at);
            if (seen.locked) found.push_back({who, tier, seen.level, seen.until, seen.firm_at});
        };
        if (!one.store->each_lockout(one.enrolment, limit, visit)) return std::nullopt;
    }
    return found;
}

}  // namespace weir
