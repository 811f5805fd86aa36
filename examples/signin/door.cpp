// SPDX-License-Identifier: BSL-1.0

#include "door.hpp"

#include "accounts.hpp"

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/postgres/store.hpp"
#include "weir/signin/guard.hpp"
#include "weir/signin/sign_in.hpp"
#include "weir/sqlite/store.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace signin {

namespace {

using namespace std::chrono_literals;

constexpr weir::duration codes_window = 15min;

weir::sign_in_options numbers(const settings& chosen)
{
    weir::sign_in_options all{.pair        = chosen.lockout,
                              .tiers       = {},
                              .per_user    = {.limit = chosen.per_user, .window = 24h},
                              .per_address = {.limit = chosen.per_address, .window = 1h},
                              .canonical   = &canonical_name,
                              .on_outage   = if_away};
    if (chosen.in_a_day > 0)
        all.tiers.push_back(
            {.failures = chosen.in_a_day, .window = 24h, .first = 24h, .longest = 24h});
    return all;
}

template <class Store>
class door_on final : public door {
public:
    door_on(std::unique_ptr<Store> counters, const settings& chosen)
        : counters_(std::move(counters)), gate_("signin", *counters_, numbers(chosen)),
          codes_("signin.code", window(chosen.codes, codes_window), *counters_, {if_away}),
          codes_user_("signin.code.user", window(chosen.codes_per_user, 24h), *counters_,
                      {if_away}),
          codes_address_("signin.code.address", window(chosen.codes_per_address, 1h), *counters_,
                         {if_away}),
          uses_("signin.use", weir::gcra{.limit = 1, .window = 2 * chosen.code_lifetime},
                *counters_, {if_away})
    {
    }

    [[nodiscard]] std::string name_of(std::string_view as_sent) const override
    {
        return gate_.name_of(as_sent);
    }

    weir::decision may_send(const visitor& who) override
    {
        if (!who.device.empty()) {
            const auto mine = weir::parts{who.user, who.device};
            if (const auto shut = standing(gate_.devices(), mine); !shut) return shut;
            return codes_.admit(mine);
        }
        const auto pair = weir::parts{who.user, who.client};
        const auto open = standing(gate_.pairs(), pair)
                              .and_then([&] { return gate_.per_user().peek(who.user); })
                              .and_then([&] { return gate_.per_address().peek(who.client); });
        if (!open) return open;
        return weir::admit_all({codes_(pair), codes_user_(who.user), codes_address_(who.client)});
    }

    weir::attempt claim(const visitor& who) override
    {
        return gate_.claim(who.user, who.client, who.device);
    }

    weir::decision first_use(std::string_view digits) override { return uses_.admit(digits); }

    [[nodiscard]] std::optional<std::vector<locked_out>> locked() const override
    {
        std::vector<locked_out> found;
        if (!add(found, "pair", gate_.pairs()) || !add(found, "device", gate_.devices()))
            return std::nullopt;
        return found;
    }

    bool clear(const weir::key& who) override
    {
        const bool pairs = gate_.pairs().clear(who);
        return gate_.devices().clear(who) && pairs;
    }
    bool clear_pair(const std::string& user, const weir::client& client) override
    {
        const auto pair = weir::parts{user, client};
        const bool own  = gate_.pairs().clear(pair) && codes_.forget(pair);
        return clear_user(user) && clear_address(client) && own;
    }
    bool clear_user(const std::string& user) override
    {
        return gate_.per_user().forget(user) && codes_user_.forget(user);
    }
    bool clear_address(const weir::client& client) override
    {
        return gate_.per_address().forget(client) && codes_address_.forget(client);
    }

private:
    using guard = weir::guard<Store>;
    template <class Policy>
    using limiter = weir::limiter<Policy, Store>;

    static weir::sliding_window window(std::uint64_t limit, weir::duration length)
    {
        return {.limit = limit, .window = length};
    }

    [[nodiscard]] weir::moment_of<Store> moment() const noexcept
    {
        if constexpr (Store::on_callers_clock) return counters_->now();
        else return {};
    }

    /// What a claim would be told of a lockout, without a claim.
    template <class Who>
    weir::decision standing(const guard& of, const Who& who) const noexcept
    {
        const auto    at  = moment();
        weir::instant now = weir::now();
        if constexpr (Store::on_callers_clock) now = at;
        weir::decision made{.verdict = weir::verdict::admitted, .limiter = of.name(), .at = now};
        for (std::size_t tier = 0; tier < of.tiers(); ++tier) {
            const auto limit = of.limit(tier);
            const auto seen  = of.look(who, at, tier);
            made.limit       = limit.failures;
            made.window      = limit.window;
            if (seen && !seen->locked) continue;
            made.verdict = weir::verdict::refused;
            if (seen) made.retry_after = std::max<weir::duration>(seen->until - now, 1s);
            else made.basis = weir::basis::store_unavailable;
            break;
        }
        return made;
    }

    static bool add(std::vector<locked_out>& found, std::string_view limit, const guard& of)
    {
        const auto all = of.locked();
        if (!all) return false;
        for (const auto& one : *all)
            found.push_back({limit, one.who, one.tier, one.level, one.until});
        return true;
    }

    std::unique_ptr<Store>        counters_;
    weir::sign_in<Store>          gate_;
    limiter<weir::sliding_window> codes_, codes_user_, codes_address_;
    limiter<weir::gcra>           uses_;
};

template <class Store, class Options>
std::unique_ptr<door> door_with(const Options& options, const settings& chosen)
{
    return std::make_unique<door_on<Store>>(std::make_unique<Store>(options), chosen);
}

std::string seconds_text(weir::duration length)
{
    return std::to_string(std::chrono::floor<seconds>(length).count()) + " s";
}

/// One limit in one line of `terms`.
std::string term(std::string_view name, std::uint64_t limit, weir::duration window)
{
    static_assert(if_missing == weir::missing_key::reject && if_away == weir::fail_closed);
    return std::string(name) + " " + std::to_string(limit) + " in " + seconds_text(window) +
           ", missing_key reject, on_outage fail_closed\n";
}

}  // namespace

std::string terms(const settings& chosen)
{
    const auto& pair = chosen.lockout;
    std::string text;
    for (const std::string name : {"signin.pair", "signin.device"}) {
        text += term(name, pair.failures, pair.window);
        if (chosen.in_a_day > 0) text += term(name + "/2", chosen.in_a_day, 24h);
    }
    text += term("signin.user", chosen.per_user, 24h);
    text += term("signin.address", chosen.per_address, 1h);
    text += term("signin.code", chosen.codes, codes_window);
    text += term("signin.code.user", chosen.codes_per_user, 24h);
    text += term("signin.code.address", chosen.codes_per_address, 1h);
    return text + term("signin.use", 1, 2 * chosen.code_lifetime);
}

/// The deadlines let many simultaneous guesses wait for their turn instead of being told 503.
std::unique_ptr<door> make_door(const settings& chosen, const std::string& secret)
{
    if (names_postgres(chosen.database))
        return door_with<weir::postgres::store>(
            weir::postgres::store_options{
                .conninfo = chosen.database, .key_secret = secret, .deadline = 2s},
            chosen);
    return door_with<weir::sqlite::store>(
        weir::sqlite::store_options{.path = chosen.database, .secret = secret, .deadline = 2s},
        chosen);
}

}  // namespace signin
