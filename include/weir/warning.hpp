// SPDX-License-Identifier: BSL-1.0
#pragma once

// Misconfigurations that can be seen from inside, by name. A name never changes once released;
// docs/warnings.md has a section under each that says what is seen, why it matters, what to set.

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace weir {

enum class warning : std::uint8_t {
    hops_with_public_peer,     ///< A header is believed by position, and the peer is public.
    forwarded_header_ignored,  ///< A forwarded header arrives, and nobody is trusted.
    trust_covers_everything,   ///< The trusted ranges hold the whole internet.
    limiter_per_request,       ///< One limiter is made again and again.
    no_secret,                 ///< A shared store makes its keys without a secret.
    different_secrets,         ///< Processes of one shared store make their keys with different secrets.
    store_away,                ///< A shared store does not answer any more.
    store_back,                ///< It answers again: no fault, but the end of one.
    user_names_as_sent,        ///< A sign-in counts each spelling of a name by itself.
};

/// The name, as in docs/warnings.md.
[[nodiscard]] constexpr std::string_view name(warning of) noexcept;

/// What is wrong and what to set, in one sentence.
[[nodiscard]] constexpr std::string_view text(warning of) noexcept;

/// Who is told of a warning; called from the thread that noticed. Null: nobody.
using warning_listener = void (*)(warning);

/// One line on standard error. Thread-safe.
inline void warn_on_stderr(warning of);

// ---------------------------------------------------------------------------------------------

constexpr std::string_view name(warning of) noexcept
{
    switch (of) {
    case warning::hops_with_public_peer:
        return "hops_with_public_peer";
    case warning::forwarded_header_ignored:
        return "forwarded_header_ignored";
    case warning::trust_covers_everything:
        return "trust_covers_everything";
    case warning::limiter_per_request:
        return "limiter_per_request";
    case warning::no_secret:
        return "no_secret";
    case warning::different_secrets:
        return "different_secrets";
    case warning::store_away:
        return "store_away";
    case warning::store_back:
        return "store_back";
    case warning::user_names_as_sent:
        return "user_names_as_sent";
    }
    return "unnamed";
}

constexpr std::string_view text(warning of) noexcept
{
    switch (of) {
    case warning::hops_with_public_peer:
        return "a header names the client although the peer is a public address that no trusted "
               "range vouches for, so whoever reaches this port directly chooses its own key: "
               "list your proxies in .trusted";
    case warning::forwarded_header_ignored:
        return "a forwarded header arrived but no proxy is trusted, so all clients behind a proxy "
               "share its key: set .trusted_hops or .trusted if there is a proxy";
    case warning::trust_covers_everything:
        return "the trusted ranges hold every public address, so the leftmost entry of the header "
               "is believed and clients choose their own keys: list your own proxies only";
    case warning::limiter_per_request:
        return "one limiter was made ten thousand times, which takes a lock each time: make it "
               "once, beside its store, and share it";
    case warning::no_secret:
        return "a shared store has no secret, so whoever reads it can find out by trying which "
               "addresses and names are in it: set .secret to 32 random bytes, the same everywhere";
    case warning::different_secrets:
        return "a shared store was last used with another secret, and what was counted under that "
               "one is not seen under this one: give all processes the same .secret";
    case warning::store_away:
        return "a shared store does not answer, so each limiter's outage rule decides until it is "
               "back: look at the server, the network and the role's rights";
    case warning::store_back:
        return "a shared store answers again and decides";
    case warning::user_names_as_sent:
        return "a sign-in has no .canonical, so each spelling of a user's name has failures of its "
               "own and a guesser has as many tries as there are spellings: set it to what the "
               "application compares names by";
    }
    return "";
}

inline void warn_on_stderr(warning of)
{
    const auto title = name(of), why = text(of);
    std::fprintf(stderr, "weir: warning %.*s: %.*s (docs/warnings.md)\n",
                 static_cast<int>(title.size()), title.data(), static_cast<int>(why.size()),
                 why.data());
}

}  // namespace weir
