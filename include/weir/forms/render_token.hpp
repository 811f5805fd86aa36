// SPDX-License-Identifier: BSL-1.0
#pragma once

// A hidden field that proves when its page was made: who posts within three seconds did not read
// the page, who comes after two hours gets a fresh one, with what he wrote.
//
//     weir::render_token tokens({.secret = secret});
//     page.hidden("form_token", tokens.issue("apply"));
//     if (const auto token = tokens.check(sent, "apply"); !token) return hand_back(form);

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/key.hpp"
#include "weir/time.hpp"

namespace weir {

struct render_token_options {
    std::string secret  = {};      ///< 16 bytes or more, the same in all processes.
    std::string purpose = "form";  ///< Tokens of one purpose are forged for any other.
    duration    min_age = std::chrono::seconds(3);  ///< The youngest that passes; itself included.
    duration    max_age = std::chrono::hours(2);    ///< The oldest that passes; itself included.
};

enum class token_verdict : std::uint8_t {
    valid,
    missing,      ///< Empty.
    forged,       ///< Of another secret, purpose or subject, or no token at all.
    too_young,    ///< Posted faster than a person reads.
    too_old,      ///< The page was open for too long.
    from_future,  ///< Issued after the instant of the check.
};

/// The verdict's name, for logs.
[[nodiscard]] constexpr std::string_view name(token_verdict of) noexcept;

/// What became known of a token. All but the verdict is unset for `missing` and `forged`.
struct [[nodiscard]] token_check {
    token_verdict verdict = token_verdict::missing;
    duration      age     = {};  ///< Since the page was made.
    key           id      = {};  ///< 128 random bits, for spent_tokens.
    instant       expires = {};  ///< The last instant at which it passes.

    constexpr explicit operator bool() const noexcept { return verdict == token_verdict::valid; }

    /// Whether it was issued here for this subject, whatever its age.
    [[nodiscard]] constexpr bool genuine() const noexcept
    {
        return verdict != token_verdict::missing && verdict != token_verdict::forged;
    }
};

/// HMAC-SHA-256 (RFC 2104) of the instant and 128 random bits, as 76 letters of base64url (RFC 4648
/// section 5). Immutable, hence thread-safe. A token may be used until it is too old: for once only
/// see forms/spent_tokens.hpp.
class render_token {
public:
    static constexpr std::size_t length = 76;

    /// Throws std::invalid_argument for a secret of less than 16 bytes and for ages out of order.
    explicit render_token(const render_token_options& options);

    /// A token for `bound_to`: the form's name, or with the client's key `weir::parts{form,
    /// client}`, which refuses whoever changes his address meanwhile. Ends the program if libcrypto
    /// has no random bytes. O(bytes of the subject).
    [[nodiscard]] std::string issue(const subject& bound_to, instant at = weir::now()) const;

    /// Constant time in what the token says. O(bytes of the subject), whatever the token's length.
    [[nodiscard]] token_check check(std::string_view token, const subject& bound_to,
                                    instant at = weir::now()) const;

private:
    std::string key_;
    duration    min_age_;
    duration    max_age_;
};

// ---------------------------------------------------------------------------------------------

constexpr std::string_view name(token_verdict of) noexcept
{
    switch (of) {
    case token_verdict::valid:
        return "valid";
    case token_verdict::missing:
        return "missing";
    case token_verdict::forged:
        return "forged";
    case token_verdict::too_young:
        return "too_young";
    case token_verdict::too_old:
        return "too_old";
    case token_verdict::from_future:
        return "from_future";
    }
    return "unnamed";
}

}  // namespace weir
