// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/digest.hpp"

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weir/policy/fixed_window.hpp"

#include "catch.hpp"

using namespace std::chrono_literals;
using weir::remote::hash;

namespace {

std::string hex(const weir::remote::hash_bytes& bytes)
{
    std::string text;
    for (const auto byte : bytes)
        text += "0123456789abcdef"[byte >> 4], text += "0123456789abcdef"[byte & 15];
    return text;
}

weir::remote::digest per_ip(std::string_view secret)
{
    return {secret, weir::fixed_window::id, "site.ip", 60s};
}

const std::string all_s(32, 's');

}  // namespace

TEST_CASE("without a secret the hash is plain SHA-256 (F54)", "[remote]")
{
    CHECK(hex(hash("", "198.51.100.4")) ==
          "14915055e8377734244f0890e1cf35857cc5059c83bf28422dad0d81a0112c89");
}

TEST_CASE("under a secret the hash is HMAC-SHA-256 (F55)", "[remote]")
{
    CHECK(hex(hash(all_s, "198.51.100.4")) ==
          "ea27a4651622469c454e021cfe4d5239fdd7a2acb3c50d9462e79fd201116291");
    CHECK(hex(hash(std::string(32, 't'), "198.51.100.4")) ==
          "b7ed171351f701fb26d01534724682d3df8e90baf84649e282a2a21d418c3013");
}

TEST_CASE("short and long secrets are padded and hashed as RFC 4231, cases 1, 2 and 6, has it",
          "[remote]")
{
    CHECK(hex(hash(std::string(20, '\x0b'), "Hi There")) ==
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK(hex(hash("Jefe", "what do ya want for nothing?")) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(hex(hash(std::string(131, '\xaa'),
                   "Test Using Larger Than Block-Size Key - Hash Key First")) ==
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("a key is the first sixteen bytes over the fixed layout, as other programs would make it",
          "[remote]")
{
    CHECK(per_ip(all_s)("198.51.100.4") == weir::key{0x4d7c51aa69e4fba3, 0x55144ea8f6405805});
    CHECK(per_ip(all_s)(weir::parts{"a", "bc"}) ==
          weir::key{0xaa93def5c0dd824d, 0xdf82a9b3148a3bba});
    CHECK(per_ip("")("198.51.100.4") == weir::key{0x02732c243d47f4e4, 0x2d5cdcfbe2093e72});
}

TEST_CASE("another secret, name, window, policy or cut of the parts is another key", "[remote]")
{
    using weir::remote::digest;
    const std::string             other(32, 't');
    const std::set<weir::key>     keys{per_ip(all_s)("who"),
                                   per_ip(other)("who"),
                                   per_ip("")("who"),
                                   digest(all_s, 1, "site", 60s)("who"),
                                   digest(all_s, 1, "site.ip", 61s)("who"),
                                   digest(all_s, 2, "site.ip", 60s)("who"),
                                   per_ip(all_s)(weir::parts{"w", "ho"}),
                                   per_ip(all_s)(weir::parts{"wh", "o"}),
                                   per_ip(all_s)("")};
    CHECK(keys.size() == 9);
}

TEST_CASE("many threads make the same key by one digest", "[remote]")
{
    const auto               digest = per_ip(all_s);
    const auto               due    = digest("198.51.100.4");
    std::vector<std::thread> threads;
    std::vector<int>         wrong(4);
    for (auto& count : wrong)
        threads.emplace_back([&] {
            for (int i = 0; i < 2'000; ++i) count += digest("198.51.100.4") != due;
        });
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a limiter's name that the layout cannot hold is refused for a shared store too",
          "[remote]")
{
    CHECK_THROWS_AS(weir::remote::digest(all_s, 1, std::string(65'536, 'n'), 60s),
                    std::invalid_argument);
}
