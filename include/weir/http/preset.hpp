// SPDX-License-Identifier: BSL-1.0
#pragma once

// Settings that belong together, under a name to start from. What they do is held by a test row by
// row.

#include <optional>
#include <span>
#include <string_view>

#include "weir/extract/client_ip.hpp"
#include "weir/http/limit_options.hpp"
#include "weir/policy/calendar_caps.hpp"
#include "weir/policy/lockout.hpp"

namespace weir::http {

/// A value; every member may be changed afterwards. A new one is one function here, one line in
/// `names` and `find`, and its rows in the test.
struct preset {
    std::string_view  name    = {};
    client_ip_options address = {};  ///< Who a client is.

    /// A limit of one client. Its `max` is none where only the operator can know it.
    limit_options client = {};

    /// A limit of all clients of one location together; none in presets that have none.
    std::optional<limit_options> place = {};

    /// Who fails is locked out by a `guard`; none where nothing can fail.
    std::optional<weir::lockout> lockout = {};

    /// Nobody is refused by these: a `calendar` says when the mail goes.
    std::optional<calendar_caps> caps = {};

    /// A public form: 60 a minute for each client over all forms and 600 for each form; windows on
    /// the clock, Retry-After to the end of the window, a JSON envelope that names the limit, and
    /// no quota fields, since the count is nobody's business.
    [[nodiscard]] static preset forms();

    /// A proxy: max in a sliding interval of 10 seconds, plain text, Retry-After is the interval.
    [[nodiscard]] static preset pingap();

    /// Guesses at a secret: five failures in 15 minutes lock the client out, for 15 minutes and
    /// twice as long each further time up to a day. The same for those who cannot be told apart. A
    /// refusal is a 429 with `{"error":"too_many"}` and tells neither a wait nor a count. `client`
    /// is for what cannot fail, such as asking for a code.
    [[nodiscard]] static preset signin();

    /// Applications: 30 mails an hour and 100 a day, and whoever comes later waits for a place. The
    /// limit of one client, 20 an hour, is against floods; it tells no wait and takes no place.
    [[nodiscard]] static preset signup();

    /// Never more than max in any span of the interval, the wait that is true, a problem document
    /// (RFC 9457), 400 for who leaves the key out, and 503 while a shared store is away. One bad
    /// /64 is one client.
    [[nodiscard]] static preset strict();

    /// forms, pingap, signin, signup, strict.
    [[nodiscard]] static std::span<const std::string_view> names() noexcept;

    /// None for any other name.
    [[nodiscard]] static std::optional<preset> find(std::string_view name);
};

}  // namespace weir::http
