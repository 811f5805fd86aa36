// SPDX-License-Identifier: BSL-1.0

#include "weir/distinct.hpp"

#include <chrono>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "weir/extract/client.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/sketch.hpp"

using namespace std::chrono_literals;

namespace {

constexpr weir::instant start{1'000'000h};

const weir::client one(*weir::address::parse("203.0.113.7")),
    other(*weir::address::parse("203.0.113.8"));

std::string print(int number) { return "fingerprint " + std::to_string(number); }

}  // namespace

TEST_CASE("2.23: an address that changes its fingerprint every time is refused after its share",
          "[distinct]")
{
    weir::memory_store           counters({.max_keys = 1000});
    const weir::distinct_limiter stacks("ja4.distinct", {.limit = 3, .window = 1h}, counters);
    for (int i = 0; i < 3; ++i) {
        const auto made = stacks.admit(one, print(i), start);
        CHECK(made);
        CHECK(made.left == static_cast<std::uint64_t>(2 - i));
        CHECK(made.cost == 1);
    }
    for (int i = 3; i < 100; ++i) CHECK_FALSE(stacks.admit(one, print(i), start));
    CHECK(stacks.admit(other, print(50), start));
}

TEST_CASE("a value that is known costs nothing, also once there is no more for others",
          "[distinct]")
{
    weir::memory_store           counters({.max_keys = 1000});
    const weir::distinct_limiter stacks("ja4.distinct", {.limit = 2, .window = 1h}, counters);
    for (int round = 0; round < 50; ++round) {
        const auto made = stacks.admit(one, print(1), start);
        CHECK(made);
        CHECK(made.left == 1);
        CHECK(made.cost == static_cast<std::uint64_t>(round == 0));
    }
    CHECK(stacks.admit(one, print(2), start));
    CHECK_FALSE(stacks.admit(one, print(3), start));
    const auto known = stacks.admit(one, print(1), start);
    CHECK(known);
    CHECK(known.retry_after == weir::duration::zero());
    CHECK(known.limiter == "ja4.distinct");
    CHECK(known.limit == 2);
}

TEST_CASE("a value that was refused is not known afterwards, and waiting to the next window helps",
          "[distinct]")
{
    weir::memory_store           counters({.max_keys = 1000});
    const weir::distinct_limiter stacks("ja4.distinct", {.limit = 1, .window = 1h}, counters);
    CHECK(stacks.admit(one, print(1), start));
    for (int i = 0; i < 3; ++i) CHECK_FALSE(stacks.admit(one, print(2), start));
    const auto refused = stacks.admit(one, print(2), start);
    REQUIRE(refused.retry_after);
    CHECK_FALSE(stacks.admit(one, print(2), start + *refused.retry_after - 1ns));
    CHECK(stacks.admit(one, print(2), start + *refused.retry_after));
    CHECK_FALSE(stacks.admit(one, print(1), start + *refused.retry_after));
}

TEST_CASE("the end of one text and the beginning of the next are not taken for each other",
          "[distinct]")
{
    weir::memory_store           counters({.max_keys = 1000});
    const weir::distinct_limiter values("values", {.limit = 1, .window = 1h}, counters);
    CHECK(values.admit(std::string_view("ab"), std::string_view("c"), start));
    CHECK(values.admit(std::string_view("a"), std::string_view("bc"), start));
}

TEST_CASE("a limit of nothing refuses every value", "[distinct]")
{
    weir::memory_store           counters({.max_keys = 1000});
    const weir::distinct_limiter values("values", {.limit = 0, .window = 1h}, counters);
    CHECK_FALSE(values.admit(one, print(1), start));
    CHECK_FALSE(values.admit(one, print(1), start));
}

TEST_CASE("a store that only estimates never lets more new values through than the limit",
          "[distinct]")
{
    weir::sketch_store           counters({.size = {.width = 64, .depth = 2}});
    const weir::distinct_limiter values("values", {.limit = 5, .window = 1h}, counters);
    int                          admitted = 0;
    for (int i = 0; i < 500; ++i) admitted += static_cast<bool>(values.admit(one, print(i), start));
    CHECK(admitted <= 5);
    CHECK(admitted > 0);
    for (int i = 0; i < 20; ++i) admitted += static_cast<bool>(values.admit(one, print(1), start));
    CHECK(admitted <= 5);
}

TEST_CASE("without an instant the clock of the store is read", "[distinct]")
{
    weir::memory_store           counters({.max_keys = 1000});
    const weir::distinct_limiter values("values", {.limit = 1, .window = 8760h}, counters);
    CHECK(values.admit(one, print(1)));
    CHECK(values.admit(one, print(1)));
    CHECK_FALSE(values.admit(one, print(2)));
}
