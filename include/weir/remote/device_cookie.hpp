// SPDX-License-Identifier: BSL-1.0
#pragma once

// A signed cookie that says: this device has signed in as this user before. It is no session and
// opens nothing; it only lets the device be counted by itself, so that strangers who fail on the
// user's name do not lock it out (OWASP, "Device Cookies").

#include <chrono>
#include <string>
#include <string_view>

#include "weir/remote/digest.hpp"
#include "weir/time.hpp"

namespace weir::remote {

struct device_cookie_options {
    std::string secret   = {};  ///< At least 16 bytes; 32 random ones are right.
    duration    lifetime = std::chrono::days(180);  ///< Whole seconds, positive.
};

/// Signs with HMAC-SHA-256 under a key that is derived from the secret for this purpose alone, over
/// the user, the device's identity and the end. Immutable, hence thread-safe.
///
/// Send it as `Secure; HttpOnly; SameSite=Lax`. Who steals it can try as that device: five guesses,
/// then its lockouts.
class device_cookie {
public:
    /// Throws std::invalid_argument for a secret that is too short and for the lifetime.
    explicit device_cookie(const device_cookie_options& options);

    /// The value for a device that has just signed in, 112 letters, digits and dots or so. `device`
    /// is what `known` said of it, so that it stays the same one; empty is a new one. Ends the
    /// program if the system has no random bytes.
    [[nodiscard]] std::string issue(std::string_view user, std::string_view device,
                                    instant at = now()) const;

    /// The identity of the device, 32 letters and digits; empty for a value that was not made here,
    /// for this user, or is over. O(bytes); what differs in the signature does not show in the time
    /// that it takes.
    [[nodiscard]] std::string known(std::string_view user, std::string_view value,
                                    instant at = now()) const;

    [[nodiscard]] duration lifetime() const noexcept { return lifetime_; }

private:
    [[nodiscard]] std::string signature(std::string_view user, std::string_view device,
                                        std::string_view until) const;

    std::string key_;
    duration    lifetime_;
};

}  // namespace weir::remote
