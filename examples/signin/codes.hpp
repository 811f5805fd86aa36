// SPDX-License-Identifier: BSL-1.0
#pragma once

// Six digits by mail, and a ticket in the form that they belong to. Nothing is stored: both come
// from one secret, so any process can check what another one has sent, and a ticket for a name that
// nobody has is made like all others.

#include "weir/time.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace signin {

/// Immutable, hence thread-safe.
class codes {
public:
    struct issued {
        std::string ticket;  ///< `<end>.<32 digits>.<64 digits>`, for the form.
        std::string code;    ///< Six digits, for the mail alone.
    };

    codes(std::string_view secret, std::chrono::seconds lifetime);

    /// Throws std::runtime_error if the system has no random bytes.
    [[nodiscard]] issued issue(std::string_view user, weir::instant at) const;

    /// The ticket's 32 digits if it was made here for this user, is not over, and the code is its
    /// own. The time it takes tells nothing of where they differ. Whoever opens something with it
    /// sees to it that these digits open it once.
    [[nodiscard]] std::optional<std::string> opened_by(std::string_view user,
                                                       std::string_view ticket,
                                                       std::string_view code,
                                                       weir::instant    at) const;

    [[nodiscard]] std::chrono::seconds lifetime() const noexcept { return lifetime_; }

private:
    [[nodiscard]] std::string signature(std::string_view purpose, std::string_view user,
                                        std::string_view begin) const;
    [[nodiscard]] std::string code_of(std::string_view user, std::string_view begin) const;
    [[nodiscard]] bool        same(std::string_view a, std::string_view b) const;

    std::string          key_;
    std::chrono::seconds lifetime_;
};

/// Bytes of a key that is derived from the secret for one purpose.
[[nodiscard]] std::string derived(std::string_view secret, std::string_view purpose);

}  // namespace signin
