// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/known_keys.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weir/remote/digest.hpp"

#include "../../reference/random.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using weir::remote::known_keys;

namespace {

const std::string secret(32, 's');

std::string random_text(reference::generator& random)
{
    std::string text(reference::random_number(random, std::size_t{0}, std::size_t{40}), '\0');
    for (auto& byte : text) byte = static_cast<char>(random());
    return text;
}

}  // namespace

TEST_CASE("the key is that of remote::digest for any subject, new, known or pushed out", "[remote]")
{
    reference::generator       random(7);
    const weir::remote::digest plain(secret, 2, "site.ip", 60s);
    const known_keys           keys(secret, 2, "site.ip", 60s, 64);
    std::vector<std::string>   texts;
    for (int i = 0; i < 300; ++i) texts.push_back(random_text(random));
    int wrong = 0;
    for (std::uint64_t i = 0; i < reference::steps(20'000); ++i) {
        const auto& text  = texts[random() % texts.size()];
        const auto& other = texts[random() % texts.size()];
        // Every other time from the few that stay known.
        const auto& one = i % 2 == 0 ? texts[random() % 8] : text;
        wrong += keys(one) != plain(one);
        wrong += keys(weir::parts{text, other}) != plain(weir::parts{text, other});
    }
    CHECK(wrong == 0);
}

TEST_CASE("with room for no subject the keys are the same", "[remote]")
{
    const weir::remote::digest plain(secret, 1, "site.ip", 60s);
    const known_keys           keys(secret, 1, "site.ip", 60s, 0);
    CHECK(keys("198.51.100.4") == plain("198.51.100.4"));
    CHECK(keys("198.51.100.4") == plain("198.51.100.4"));
}

TEST_CASE("however many subjects come, no more memory is taken", "[remote]")
{
    const known_keys keys(secret, 1, "site.ip", 60s, 1'024);
    const auto       bytes = keys.bytes();
    CHECK(bytes < 1'024 * 40 + 1'024);
    for (int i = 0; i < 20'000; ++i) (void)keys(std::to_string(i));
    CHECK(keys.bytes() == bytes);
}

TEST_CASE("threads that ask for the same and for other subjects get the keys of the digest",
          "[remote]")
{
    const weir::remote::digest plain(secret, 1, "site.ip", 60s);
    const known_keys           keys(secret, 1, "site.ip", 60s, 4);
    std::vector<weir::key>     due;
    for (int i = 0; i < 8; ++i) due.push_back(plain(std::to_string(i)));
    std::vector<std::thread> threads;
    std::vector<int>         wrong(4);
    for (auto& count : wrong)
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < 8'000; ++i)
                count += keys(std::to_string(i % 8)) != due[i % 8];
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a name that the layout cannot hold is refused where keys are remembered too", "[remote]")
{
    CHECK_THROWS_AS(known_keys(secret, 1, std::string(65'536, 'n'), 60s, 16),
                    std::invalid_argument);
}
