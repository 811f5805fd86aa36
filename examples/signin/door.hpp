// SPDX-License-Identifier: BSL-1.0
#pragma once

// All limits of the sign-in, on whichever store the settings name.

#include "settings.hpp"

#include "weir/decision.hpp"
#include "weir/extract/client.hpp"
#include "weir/extract/missing_key.hpp"
#include "weir/key.hpp"
#include "weir/signin/attempt.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace signin {

/// What holds for each limit here. A sign-in that nobody can be counted for is a bad request, and
/// one that cannot be counted is refused: anything else would be a way around.
inline constexpr weir::missing_key if_missing = weir::missing_key::reject;
inline constexpr weir::outage_rule if_away    = weir::fail_closed;

/// Who tries: borrowed by no call here.
struct visitor {
    std::string  user   = {};  ///< As `name_of` says it.
    weir::client client = weir::client();
    std::string  device = {};  ///< Of a device that is known to the user; else empty.
};

/// A key that is locked out.
struct locked_out {
    std::string_view limit = {};  ///< `pair` or `device`.
    weir::key        who   = {};
    std::uint64_t    tier = 0, level = 0;
    weir::instant    until = {};
};

/// Thread-safe. Decisions name their limit; nothing throws but for want of memory.
class door {
public:
    virtual ~door() = default;

    [[nodiscard]] virtual std::string name_of(std::string_view as_sent) const = 0;

    /// Whether a code may be mailed at this visitor's wish; it counts if so. Refused as well while
    /// a try would be: nobody is mailed what cannot be used.
    virtual weir::decision may_send(const visitor& who) = 0;

    /// Claims a try, before anything is looked at.
    virtual weir::attempt claim(const visitor& who) = 0;

    /// Admitted the first time that a ticket's digits are shown, and never again.
    virtual weir::decision first_use(std::string_view digits) = 0;

    /// None where the store is away.
    [[nodiscard]] virtual std::optional<std::vector<locked_out>> locked() const = 0;

    /// The operator's resets; false where the store is away. Of a digest out of `locked`; of a pair
    /// with the wide limits of both; of the wide limits of a user, and of an address.
    virtual bool clear(const weir::key& who)                                     = 0;
    virtual bool clear_pair(const std::string& user, const weir::client& client) = 0;
    virtual bool clear_user(const std::string& user)                             = 0;
    virtual bool clear_address(const weir::client& client)                       = 0;
};

/// Throws std::invalid_argument for what the store does not take, std::runtime_error if there is
/// no server to talk to.
std::unique_ptr<door> make_door(const settings& chosen, const std::string& secret);

/// Every limit in a line: its name and numbers, and what holds where nothing can be counted.
[[nodiscard]] std::string terms(const settings& chosen);

}  // namespace signin
