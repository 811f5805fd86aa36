// SPDX-License-Identifier: BSL-1.0

#include "weir/forms/render_token.hpp"

#include "catch.hpp"

#include <chrono>
#include <set>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;
using weir::render_token;
using weir::token_verdict;

namespace {

constexpr weir::instant at     = std::chrono::sys_days(std::chrono::days(20'458));
const std::string       secret = "a secret of thirty-two bytes....";

const render_token tokens({.secret = secret});

token_verdict after(weir::duration age)
{
    return tokens.check(tokens.issue("apply", at), "apply", at + age).verdict;
}

}  // namespace

TEST_CASE("D29: a token passes from 3 s to 7,200 s, both included", "[forms]")
{
    CHECK(after(3s) == token_verdict::valid);
    CHECK(after(7'200s) == token_verdict::valid);
    CHECK(after(2'999ms) == token_verdict::too_young);
    CHECK(after(3s - 1ns) == token_verdict::too_young);
    CHECK(after(7'200'001ms) == token_verdict::too_old);
    CHECK(after(7'200s + 1ns) == token_verdict::too_old);
    CHECK(after(0s) == token_verdict::too_young);
    CHECK(after(-1ns) == token_verdict::from_future);
    CHECK(after(-100h) == token_verdict::from_future);
}

TEST_CASE("D28: a missing token is told from a forged one, and neither passes", "[forms]")
{
    CHECK(tokens.check("", "apply", at).verdict == token_verdict::missing);
    CHECK(tokens.check("forged", "apply", at).verdict == token_verdict::forged);
    CHECK(!tokens.check("", "apply", at));
    CHECK(!tokens.check("", "apply", at).genuine());
    CHECK(!tokens.check(std::string(76, 'A'), "apply", at).genuine());
    CHECK(!tokens.check(std::string(1 << 20, 'A'), "apply", at));
}

TEST_CASE("no letter of a token can be changed, left out or added", "[forms]")
{
    const auto token = tokens.issue("apply", at);
    REQUIRE(token.size() == render_token::length);
    REQUIRE(tokens.check(token, "apply", at + 10s));
    for (std::size_t i = 0; i < token.size(); ++i) {
        for (const char other : {'A', 'B', '_', '=', '+', ' ', '\0'}) {
            auto changed = token;
            if (changed[i] == other) continue;
            changed[i] = other;
            REQUIRE(tokens.check(changed, "apply", at + 10s).verdict == token_verdict::forged);
        }
        auto shorter = token;
        shorter.erase(i, 1);
        REQUIRE(!tokens.check(shorter, "apply", at + 10s));
    }
    CHECK(!tokens.check(token + "=", "apply", at + 10s));
    CHECK(!tokens.check(token + token, "apply", at + 10s));
}

TEST_CASE("D27: a token of another secret, purpose or form is forged", "[forms]")
{
    const auto token = tokens.issue("apply", at);
    CHECK(tokens.check(token, "contact", at + 10s).verdict == token_verdict::forged);
    CHECK(tokens.check(token, "", at + 10s).verdict == token_verdict::forged);
    const render_token other({.secret = "another one of thirty-two bytes."});
    CHECK(other.check(token, "apply", at + 10s).verdict == token_verdict::forged);
    const render_token elsewhere({.secret = secret, .purpose = "session"});
    CHECK(elsewhere.check(token, "apply", at + 10s).verdict == token_verdict::forged);
    CHECK(tokens.check(elsewhere.issue("apply", at), "apply", at + 10s).verdict ==
          token_verdict::forged);
    CHECK(render_token({.secret = secret}).check(token, "apply", at + 10s));  // another process
}

TEST_CASE("a token bound to a client is no other client's, and parts are not run together",
          "[forms]")
{
    const weir::parts mine("apply", "198.51.100.4");
    const auto        token = tokens.issue(mine, at);
    CHECK(tokens.check(token, mine, at + 10s));
    CHECK(!tokens.check(token, weir::parts("apply", "198.51.100.5"), at + 10s));
    CHECK(!tokens.check(token, "apply", at + 10s));
    CHECK(!tokens.check(token, weir::parts("apply1", "98.51.100.4"), at + 10s));
    CHECK(!tokens.check(token, "apply198.51.100.4", at + 10s));
}

TEST_CASE("tokens of one instant differ, and each tells the same id at every check", "[forms]")
{
    std::set<std::string> texts;
    std::set<weir::key>   ids;
    for (int i = 0; i < 1'000; ++i) {
        const auto token = tokens.issue("apply", at);
        const auto first = tokens.check(token, "apply", at + 3s);
        CHECK(first.id == tokens.check(token, "apply", at + 5s).id);
        CHECK(first.expires == at + 7'200s);
        CHECK(first.age == 3s);
        texts.insert(token), ids.insert(first.id);
    }
    CHECK(texts.size() == 1'000);
    CHECK(ids.size() == 1'000);
}

TEST_CASE("ages can be set, and those out of order are a configuration error", "[forms]")
{
    const render_token any({.secret = secret, .min_age = 0s, .max_age = 0s});
    CHECK(any.check(any.issue("apply", at), "apply", at));
    CHECK(!any.check(any.issue("apply", at), "apply", at + 1ns));
    CHECK_THROWS_AS(render_token({.secret = secret, .min_age = 3s, .max_age = 2s}),
                    std::invalid_argument);
    CHECK_THROWS_AS(render_token({.secret = secret, .min_age = -1s}), std::invalid_argument);
    CHECK_THROWS_AS(render_token({.secret = "fifteen bytes.."}), std::invalid_argument);
    CHECK_THROWS_AS(render_token({}), std::invalid_argument);
}

TEST_CASE("instants at the ends of time wrap nowhere", "[forms]")
{
    const auto first = weir::instant::min(), last = weir::instant::max();
    CHECK(tokens.check(tokens.issue("apply", first), "apply", last).verdict ==
          token_verdict::too_old);
    CHECK(tokens.check(tokens.issue("apply", last), "apply", first).verdict ==
          token_verdict::from_future);
    CHECK(tokens.check(tokens.issue("apply", last), "apply", last).expires == last);
}

TEST_CASE("what is signed is as RFC 2104 and this layout have it, in every version to come",
          "[forms]")
{
    // Made with another implementation of HMAC-SHA-256: see tests/reference/render_token.py.
    const std::string_view made =
        "ARiHrKQzNgAAAAECAwQFBgcICQoLDA0OD-PXX_2glUBTF3XDnXtnpT4Vk6qdthaFdmtde1De_ttl";
    const auto found = tokens.check(made, weir::parts("apply", "198.51.100.4"), at + 10s);
    CHECK(found.verdict == token_verdict::valid);
    CHECK(found.id == weir::key{0x0001020304050607, 0x08090a0b0c0d0e0f});
}
