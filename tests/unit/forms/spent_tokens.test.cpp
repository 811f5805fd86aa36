// SPDX-License-Identifier: BSL-1.0

#include "weir/forms/spent_tokens.hpp"

#include "catch.hpp"

#include <atomic>
#include <chrono>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using weir::spent_tokens;
using weir::token_use;

namespace {

constexpr weir::instant at = std::chrono::sys_days(std::chrono::days(20'458));

weir::key id(std::uint64_t number) { return {number, ~number}; }

}  // namespace

TEST_CASE("O55: a token passes once, and of 8 that bring it at once one passes", "[forms]")
{
    spent_tokens             spent;
    std::atomic<int>         passed = 0;
    std::vector<std::thread> posts;
    for (int i = 0; i < 8; ++i)
        posts.emplace_back([&] { passed += spent.spend(id(1), at + 2h, at) == token_use::first; });
    for (auto& post : posts) post.join();
    CHECK(passed == 1);
    CHECK(spent.spend(id(1), at + 2h, at) == token_use::again);
    CHECK(spent.spend(id(2), at + 2h, at) == token_use::first);
}

TEST_CASE("O55: what could still pass is never forgotten, full means refuse", "[forms]")
{
    spent_tokens spent({.most = 3});
    for (std::uint64_t i = 0; i < 3; ++i)
        CHECK(spent.spend(id(i), at + 2h, at) == token_use::first);
    CHECK(spent.spend(id(3), at + 2h, at) == token_use::full);
    CHECK(spent.spend(id(0), at + 2h, at) == token_use::again);
    CHECK(spent.spend(id(3), at + 2h, at + 2h) == token_use::full);
    CHECK(spent.size() == 3);
    // An hour longer than they are good for, for clocks that step back.
    CHECK(spent.spend(id(3), at + 6h, at + 3h) == token_use::full);
    CHECK(spent.spend(id(3), at + 6h, at + 3h + 1ns) == token_use::first);
    CHECK(spent.size() == 1);
}

TEST_CASE("a token that was spent for nothing can be given back, once", "[forms]")
{
    spent_tokens spent({.most = 1});
    CHECK(spent.spend(id(1), at + 2h, at) == token_use::first);
    spent.give_back(id(1), at + 2h);
    spent.give_back(id(1), at + 2h);
    CHECK(spent.spend(id(1), at + 2h, at) == token_use::first);
    CHECK(spent.size() == 1);
}

TEST_CASE("a bound of none or of more than a thousand million is a configuration error", "[forms]")
{
    CHECK_THROWS_AS(spent_tokens({.most = 0}), std::invalid_argument);
    CHECK_THROWS_AS(spent_tokens({.most = 1'000'000'001}), std::invalid_argument);
}

TEST_CASE("the parts in which tokens are kept lie side by side and hold what was asked for",
          "[forms]")
{
    std::mt19937_64 random(55);
    for (const std::size_t most : {1u, 100u, 1'000u, 1'024u, 100'000u, 1'000'000'000u}) {
        INFO("most " << most);
        const auto first = weir::detail::part_of({0, 0}, most);
        const auto last  = weir::detail::part_of({~std::uint64_t{0}, ~std::uint64_t{0}}, most);
        CHECK(first.low == weir::key{0, 0});
        CHECK(last.high == weir::key{~std::uint64_t{0}, ~std::uint64_t{0}});
        const auto parts =
            first.high.high == ~std::uint64_t{0} ? 1 : ~std::uint64_t{0} / first.high.high;
        CHECK(parts * first.most <= most);
        CHECK(parts * (first.most + 1) > most);
        CHECK(first.most < 1'024);
        for (int i = 0; i < 100; ++i) {
            const weir::key one{random(), random()};
            const auto      part = weir::detail::part_of(one, most);
            REQUIRE(part.low <= one);
            REQUIRE(one <= part.high);
            REQUIRE(weir::detail::part_of(part.low, most).high == part.high);
            REQUIRE(weir::detail::part_of(part.high, most).low == part.low);
        }
    }
}
