// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/held_keys.hpp"

#include <chrono>
#include <cstdint>

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::key;
using weir::remote::held_keys;
using way = held_keys::way;

namespace {

constexpr held_keys::time_point start{24h};

}  // namespace

TEST_CASE("nobody waits for a held key, and after each pause one does, alone, until it is answered",
          "[remote]")
{
    held_keys known;
    CHECK(known.empty());
    CHECK(known.look({1, 2}, start) == way::free);
    known.add({1, 2}, start);
    CHECK(!known.empty());
    CHECK(known.look({1, 3}, start) == way::free);
    CHECK(known.look({1, 2}, start) == way::not_now);
    CHECK(known.look({1, 2}, start + held_keys::pause - 1ns) == way::not_now);
    CHECK(known.look({1, 2}, start + held_keys::pause) == way::alone);
    CHECK(known.look({1, 2}, start + held_keys::pause) == way::not_now);
    CHECK(known.look({1, 2}, start + 2 * held_keys::pause) == way::alone);
    known.drop({1, 2});
    CHECK(known.empty());
    CHECK(known.look({1, 2}, start) == way::free);
}

TEST_CASE("the last eight held keys are known, and dropping one keeps the others", "[remote]")
{
    held_keys known;
    for (std::uint64_t n = 0; n < 10; ++n) known.add({n, n}, start);
    known.add({9, 9}, start);  // it is known already
    int held = 0;
    for (std::uint64_t n = 0; n < 10; ++n) held += known.look({n, n}, start) == way::not_now;
    CHECK(held == 8);
    CHECK(known.look({0, 0}, start) == way::free);
    CHECK(known.look({9, 9}, start) == way::not_now);
    known.drop({5, 5});
    known.drop({5, 5});
    for (std::uint64_t n = 2; n < 10; ++n)
        CHECK(known.look({n, n}, start) == (n == 5 ? way::free : way::not_now));
}
