// SPDX-License-Identifier: BSL-1.0

#include "weir/signin/sign_in.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "weir/extract/client.hpp"
#include "weir/store/memory.hpp"
#include "weir/testing/manual_clock.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::warning;

namespace {

constexpr auto start = weir::testing::manual_clock::new_year;

struct room {
    weir::testing::manual_clock clock;
    weir::memory_store          counters{{.clock = clock.function()}};
};

std::atomic<int> warned = 0;
void             count_warning(warning of) { warned += of == warning::user_names_as_sent; }

/// What the application of O49 compares by, for the names that the case has: trims, folds case, and
/// reads the full-width b as b.
std::string canonical(std::string_view name)
{
    std::string wide(name);
    if (const auto at = wide.find("\xEF\xBD\x82"); at != wide.npos) wide.replace(at, 3, "b");
    std::erase(wide, ' ');
    std::ranges::transform(wide, wide.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    });
    return wide;
}

const weir::sign_in_options with_names{.canonical = &canonical};

std::string address(int n) { return "2001:db8::" + std::to_string(n); }

}  // namespace

TEST_CASE("all spellings of a name share its five tries (O49)", "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    for (const auto* const name : {"bob", " bob ", "BOB", "Bob", "\xEF\xBD\x82ob"})
        CHECK(gate.claim(gate.name_of(name), address(1)));
    for (const auto* const name : {"bob", "bOb"})
        CHECK_FALSE(gate.claim(gate.name_of(name), address(1)));
    CHECK(gate.claim(gate.name_of("b0b"), address(1)));
}

TEST_CASE("a sign-in that counts names as they are sent is warned of once, when it is made (O49)",
          "[sign_in]")
{
    room here;
    warned = 0;
    const weir::sign_in silent("a", here.counters,
                               {.canonical = &canonical, .warn = &count_warning});
    CHECK(warned == 0);
    const weir::sign_in gate("b", here.counters, {.warn = &count_warning});
    (void)gate.claim(gate.name_of("bob"), address(1));
    CHECK(warned == 1);
    CHECK(gate.name_of(" Bob") == " Bob");
}

TEST_CASE("10000 failures of strangers on a name leave its owner's known device able to sign in",
          "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    int                 evaluated = 0;
    for (int n = 0; n < 10'000; ++n) evaluated += bool(gate.claim("bob", address(n)));
    CHECK(evaluated == 100);  // the wide limit of the name
    CHECK_FALSE(gate.claim("bob", address(10'000)));

    auto own = gate.claim("bob", address(1), "a device of bob");
    CHECK(own);
    own.succeeded();
    CHECK(gate.devices().look(weir::parts{"bob", "a device of bob"})->failures == 0);
}

TEST_CASE("a known device has five tries of its own and no more", "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    for (int n = 0; n < 5; ++n) CHECK(gate.claim("bob", address(n), "stolen"));
    CHECK_FALSE(gate.claim("bob", address(6), "stolen"));
    CHECK(gate.claim("bob", address(6), "another"));
    CHECK(gate.claim("bob", address(6)));
}

TEST_CASE("one address that tries many names meets its own limit", "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    int                 evaluated = 0;
    for (int n = 0; n < 1'000; ++n)
        evaluated += bool(gate.claim("user" + std::to_string(n), address(1)));
    CHECK(evaluated == 100);
    CHECK(gate.claim("user1", address(2)));
}

TEST_CASE("a success gives back its place of the pair, of the user and of the address", "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    for (int n = 0; n < 500; ++n) {
        auto attempt = gate.claim("bob", address(1));
        REQUIRE(attempt);
        attempt.succeeded();
    }
    CHECK(gate.per_user().peek("bob").left == 100);
    CHECK(gate.per_address().peek(address(1)).left == 100);
    CHECK(gate.pairs().look(weir::parts{"bob", address(1)})->failures == 0);
}

TEST_CASE("a refusal of one limit takes no place in the others", "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    for (int n = 0; n < 50; ++n) (void)gate.claim("bob", address(1));
    CHECK(gate.per_user().peek("bob").left == 95);
    CHECK(gate.per_address().peek(address(1)).left == 95);
}

TEST_CASE("a client address is a part of the pair as it is", "[sign_in]")
{
    room                here;
    const weir::sign_in gate("signin", here.counters, with_names);
    const weir::client  one(*weir::address::parse("2001:db8::1"));
    const weir::client  near(*weir::address::parse("2001:db8::ffff"));
    for (int n = 0; n < 5; ++n) CHECK(gate.claim("bob", one, {}, start));
    CHECK_FALSE(gate.claim("bob", near, {}, start));  // of the same /64
}
