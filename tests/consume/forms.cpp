// SPDX-License-Identifier: BSL-1.0

// A token and a trap of the installed package. Exits with 0 if they tell a person from a script.

#include <chrono>

#include "weir/forms/honeypot.hpp"
#include "weir/forms/render_token.hpp"
#include "weir/forms/spent_tokens.hpp"

int main()
{
    using namespace std::chrono_literals;
    const weir::render_token tokens({.secret = "a secret of thirty-two bytes...."});
    const weir::honeypot     field;
    weir::spent_tokens       spent;

    const auto at    = weir::now();
    const auto token = tokens.issue("apply", at);
    if (tokens.check(token, "apply", at) || tokens.check(token, "contact", at + 10s)) return 1;
    const auto found = tokens.check(token, "apply", at + 10s);
    if (!found || field.check("") != weir::trap::empty) return 2;
    if (spent.spend(found.id, found.expires) != weir::token_use::first) return 3;
    return spent.spend(found.id, found.expires) == weir::token_use::again ? 0 : 4;
}
