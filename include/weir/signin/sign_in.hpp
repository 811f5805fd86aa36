// SPDX-License-Identifier: BSL-1.0
#pragma once

// What guards a sign-in: growing lockouts of a user from one address, wide limits of the user and
// of the address, and a way past both for a device that has signed in before.

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/key.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/lockout.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/signin/attempt.hpp"
#include "weir/signin/guard.hpp"
#include "weir/store.hpp"
#include "weir/warning.hpp"

namespace weir {

struct sign_in_options {
    /// Of one user from one address, and of one known device of one user.
    lockout              pair  = {};
    std::vector<lockout> tiers = {{.failures = 20,
                                   .window   = std::chrono::hours(24),
                                   .first    = std::chrono::hours(24),
                                   .longest  = std::chrono::hours(24)}};

    /// Failures of one user from wherever, and of one address on whomever. Wide: who is behind them
    /// waits with them, though without any doubling.
    sliding_window per_user    = {.limit = 100, .window = std::chrono::hours(24)};
    sliding_window per_address = {.limit = 100, .window = std::chrono::hours(1)};

    /// One spelling of a user's name: trims, folds case, normalises, as the application compares
    /// names. Null: names count as they are sent, and that is warned of. May throw; thread-safe.
    std::string (*canonical)(std::string_view) = nullptr;

    outage_rule      on_outage = fail_closed;
    warning_listener warn      = &warn_on_stderr;  ///< Told once, when it is made.
};

/// Thread-safe. Borrows its store; attempts borrow it, and it stays where it is. Instants as for
/// `guard`.
///
///     const auto user    = gate.name_of(form.user);
///     auto       attempt = gate.claim(user, client, cookies.known(user, cookie));
///     if (!attempt) return weir::refuse(request, response, attempt.decision());
///     if (matches(user, form.code)) attempt.succeeded();
template <class Store>
class sign_in {
public:
    using moment = moment_of<Store>;

    /// Throws std::invalid_argument for numbers that a policy or the store cannot hold.
    sign_in(std::string_view name, Store& store, const sign_in_options& options = {});

    /// The name to count by and to look up: one for all spellings. Throws what `canonical` throws.
    [[nodiscard]] std::string name_of(std::string_view as_sent) const
    {
        return canonical_ != nullptr ? canonical_(as_sent) : std::string(as_sent);
    }

    /// Claims a try of a user, whether there is such a user or not. `device` is the identity of a
    /// device of this user that is known (see remote/device_cookie.hpp), empty if it is not: then
    /// what strangers have failed does not count for it, only what it has failed itself. All places
    /// or none. Allocates, and ends the program without memory.
    template <subject_part Address>
    attempt claim(std::string_view user, const Address& client, std::string_view device,
                  moment_for<Store> auto at) const noexcept;
    template <subject_part Address>
    attempt claim(std::string_view user, const Address& client,
                  std::string_view device = {}) const noexcept;

    /// Keys of both are `parts{user, …}`: look, clear, locked.
    [[nodiscard]] const guard<Store>& pairs() const noexcept { return pairs_; }
    [[nodiscard]] const guard<Store>& devices() const noexcept { return devices_; }

    [[nodiscard]] const limiter<sliding_window, Store>& per_user() const noexcept { return user_; }
    [[nodiscard]] const limiter<sliding_window, Store>& per_address() const noexcept
    {
        return address_;
    }

private:
    template <subject_part Address>
    std::vector<pending> parts_of(std::string_view user, const Address& client,
                                  std::string_view device) const;

    guard<Store>                   pairs_, devices_;
    limiter<sliding_window, Store> user_, address_;
    std::string (*canonical_)(std::string_view);
};

// ---------------------------------------------------------------------------------------------

template <class Store>
sign_in<Store>::sign_in(std::string_view name, Store& store, const sign_in_options& options)
    : pairs_(std::string(name) + ".pair", options.pair, store,
             {.on_outage = options.on_outage, .tiers = options.tiers}),
      devices_(std::string(name) + ".device", options.pair, store,
               {.on_outage = options.on_outage, .tiers = options.tiers}),
      user_(std::string(name) + ".user", options.per_user, store, {options.on_outage}),
      address_(std::string(name) + ".address", options.per_address, store, {options.on_outage}),
      canonical_(options.canonical)
{
    if (canonical_ == nullptr && options.warn != nullptr) options.warn(warning::user_names_as_sent);
}

template <class Store>
template <subject_part Address>
std::vector<pending> sign_in<Store>::parts_of(std::string_view user, const Address& client,
                                              std::string_view device) const
{
    std::vector<pending> all;
    all.reserve(pairs_.tiers() + 2);
    if (!device.empty()) {
        devices_.claim_into(all, parts{user, device});
    } else {
        pairs_.claim_into(all, parts{user, client});
        all.push_back(user_(user));
        all.push_back(address_(client));
    }
    return all;
}

template <class Store>
template <subject_part Address>
attempt sign_in<Store>::claim(std::string_view user, const Address& client, std::string_view device,
                              [[maybe_unused]] moment_for<Store> auto at) const noexcept
{
    auto    all = parts_of(user, client, device);
    instant then{};
    if constexpr (Store::on_callers_clock) then = at;
    const auto made = admit_all(all, then);
    return {std::move(all), made, {}};
}

template <class Store>
template <subject_part Address>
attempt sign_in<Store>::claim(std::string_view user, const Address& client,
                              std::string_view device) const noexcept
{
    auto       all  = parts_of(user, client, device);
    const auto made = admit_all(all);
    return {std::move(all), made, {}};
}

}  // namespace weir
