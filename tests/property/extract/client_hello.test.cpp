// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/client_hello.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "catch.hpp"
#include "reference/made_hello.hpp"
#include "reference/random.hpp"
#include "reference/slow_hello.hpp"

namespace {

using codes = std::vector<std::uint16_t>;

std::uint16_t code(reference::generator& random)
{
    static constexpr std::array likely = {0x0304, 0x0303, 0x0302, 0x0a0a, 0xfafa, 0x0a1a,
                                          0x1301, 0xc02f, 0xfefd, 0xfeff, 0xfefc, 0x0403};
    const auto                  any    = reference::chance(random, 60)
                                             ? static_cast<unsigned>(likely[random() % likely.size()])
                                             : static_cast<unsigned>(random() % 65'536);
    return static_cast<std::uint16_t>(any);
}

codes some_codes(reference::generator& random, std::size_t most)
{
    codes all(random() % most);
    std::generate(all.begin(), all.end(), [&] { return code(random); });
    return all;
}

reference::extension drawn_extension(reference::generator& random)
{
    static constexpr std::array types = {0, 10, 16, 43, 13, 21, 35, 41, 42, 0x0a0a};
    switch (random() % 5) {
    case 0:
        return reference::versions(some_codes(random, 6));
    case 1:
        return reference::signatures(some_codes(random, 9));
    case 2: {
        std::string names;
        for (auto more = random() % 3; more > 0; --more) {
            std::string name(random() % 4, 'h');
            for (auto& c : name)
                if (reference::chance(random, 30)) c = static_cast<char>(random() % 256);
            names += reference::block(name, 1);
        }
        return reference::protocols(names);
    }
    case 3:
        return {static_cast<std::uint16_t>(types[random() % types.size()]),
                std::string(random() % 5, 'x')};
    default:
        return {code(random), std::string(random() % 9, 'x')};
    }
}

reference::made_hello drawn(reference::generator& random)
{
    reference::made_hello made{.version    = code(random),
                               .session_id = std::string(random() % 34, 'i'),
                               .cookie     = std::string(random() % 20, 'c'),
                               .ciphers    = some_codes(random, 20)};
    for (auto more = random() % 8; more > 0; --more)
        made.extensions.push_back(drawn_extension(random));
    return made;
}

std::string ja4_of(const std::string& message)
{
    return std::string(ja4(weir::read_client_hello(message).hello).bytes());
}

}  // namespace

TEST_CASE("a hello is the one of the slow reading, whole and split, for 20000 drawn hellos")
{
    reference::generator random(20261130);
    std::size_t          complete = 0, malformed = 0, others = 0;
    const auto           steps = reference::steps(20'000);
    for (std::uint64_t step = 0; step < steps; ++step) {
        const char transport = "tqd"[random() % 3];
        const auto made      = drawn(random);
        auto       message   = transport == 'd' ? made.dtls_message() : made.message();
        if (reference::chance(random, 30))
            message[random() % message.size()] = static_cast<char>(random() % 256);
        if (reference::chance(random, 20)) message += "behind";

        const auto most  = reference::chance(random, 95) ? std::size_t{65'536} : message.size() - 3;
        const auto wrong = reference::wrong_hello(message, transport, most, random);
        if (!wrong.empty()) FAIL("step " << step << ": " << wrong);
        auto stream = reference::records(message, 1 + random() % 300);
        if (reference::chance(random, 20))
            stream[random() % stream.size()] = static_cast<char>(random() % 256);
        const auto torn = reference::wrong_records(stream, most, random);
        if (!torn.empty()) FAIL("step " << step << ", in records: " << torn);

        const auto says = reference::slow_hello(message, transport, most);
        ++(says.size() > 40 ? complete : says == "malformed" ? malformed : others);
    }
    // The draw is worth little if one kind of answer is rare.
    CHECK(complete > steps / 3);
    CHECK(malformed > steps / 10);
    CHECK(others > steps / 50);
}

TEST_CASE("GREASE anywhere and any order of ciphers and extensions leave JA4 as it is")
{
    static constexpr std::array<std::uint16_t, 3> grease = {0x0a0a, 0x8a8a, 0xfafa};
    reference::generator                          random(20261201);
    const auto                                    steps = reference::steps(2000);
    for (std::uint64_t step = 0; step < steps; ++step) {
        const auto            version = codes{0x0304, 0x0303}, signature = codes{0x0403, 0x0804};
        reference::made_hello made{.ciphers = some_codes(random, 20)};
        for (auto more = random() % 8; more > 0; --more)
            made.extensions.push_back({static_cast<std::uint16_t>(100 + random() % 60'000), "x"});
        auto greased = made;
        made.extensions.push_back(reference::versions(version));
        made.extensions.push_back(reference::signatures(signature));

        const auto strewn = [&](codes all) {
            const auto one = grease[random() % grease.size()];
            all.insert(all.begin() + static_cast<std::ptrdiff_t>(random() % (all.size() + 1)), one);
            return all;
        };
        greased.ciphers = strewn(greased.ciphers);
        greased.extensions.push_back(reference::versions(strewn(version)));
        greased.extensions.push_back(reference::signatures(strewn(signature)));
        greased.extensions.push_back({grease[random() % grease.size()], "x"});
        std::shuffle(greased.ciphers.begin(), greased.ciphers.end(), random);
        std::shuffle(greased.extensions.begin(), greased.extensions.end(), random);
        if (ja4_of(made.message()) != ja4_of(greased.message())) FAIL("step " << step);
    }
    SUCCEED();
}
