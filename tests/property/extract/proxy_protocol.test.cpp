// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/proxy_protocol.hpp"

#include <array>
#include <string>

#include "catch.hpp"
#include "reference/proxy_header.hpp"
#include "reference/random.hpp"

namespace {

template <std::size_t Count>
std::string one_of(reference::generator& random, const std::array<const char*, Count>& pieces)
{
    return pieces[random() % Count];
}

/// A line of version 1 that is right, or nearly.
std::string line(reference::generator& random)
{
    static constexpr std::array heads = {"TCP4", "TCP4",    "TCP4", "TCP6",
                                         "TCP6", "UNKNOWN", "TCP",  ""};
    static constexpr std::array v4    = {"192.0.2.1", "255.255.255.255", "10.0.0.1", "0.0.0.0"};
    static constexpr std::array v6    = {"2001:Db8::1", "::", "::ffff:1.2.3.4",
                                         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};
    static constexpr std::array odd   = {"1.2.3", "01.2.3.4", "fe80::1%eth0", "", "[::1]", "::1 "};
    static constexpr std::array ports = {"0", "80", "65535", "65535", "65536", "080", ""};
    static constexpr std::array ends  = {"\r\n", "\r\n", "\r\n", "\n", "\r", "\r\n\r\n", " \r\n"};

    auto       out = "PROXY " + one_of(random, heads);
    const bool six = out.ends_with('6');
    for (int i = 0; i < 2; ++i)
        out += ' ' + (reference::chance(random, 8) ? one_of(random, odd)
                      : six                        ? one_of(random, v6)
                                                   : one_of(random, v4));
    for (int i = 0; i < 2; ++i) out += ' ' + one_of(random, ports);
    if (reference::chance(random, 5)) out += std::string(random() % 60, 'x');
    return out + one_of(random, ends);
}

std::string big_endian(std::uint64_t number, int bytes)
{
    std::string out;
    while (bytes-- > 0) out += static_cast<char>(number >> 8 * bytes & 0xff);
    return out;
}

std::string tlv(int type, const std::string& value)
{
    return big_endian(static_cast<std::uint64_t>(type), 1) + big_endian(value.size(), 2) + value;
}

/// A block of version 2 that is right, or nearly, every second one with a checksum.
std::string block(reference::generator& random)
{
    static constexpr std::array families = {0x11, 0x11, 0x12, 0x21, 0x21, 0x22, 0x31, 0x00, 0x41};
    const auto family = families[random() % families.size()];
    const auto width  = family >> 4 == 1   ? 12U
                        : family >> 4 == 2 ? 36U
                        : family == 0x31   ? 216U
                                           : 0U;

    std::string body;
    for (unsigned i = 0; i < width; ++i) body += static_cast<char>(random() % 256);
    if (family == 0x21 && reference::chance(random, 30))
        body.replace(0, 12, std::string(10, '\0') + "\xff\xff");
    for (auto more = random() % 3; more > 0; --more)
        body += tlv(reference::chance(random, 90) ? 1 : 3, std::string(random() % 9, 'x'));
    const bool sum = reference::chance(random, 50);
    const auto at  = 16 + body.size() + 3;
    if (sum) body += tlv(3, std::string(4, '\0'));
    for (auto more = random() % 2; more > 0; --more) body += tlv(4, std::string(random() % 5, 'y'));
    if (reference::chance(random, 10)) body.resize(random() % (body.size() + 1));
    if (reference::chance(random, 5)) body += '\1';

    auto out = std::string("\r\n\r\n\0\r\nQUIT\n", 12);
    out += reference::chance(random, 10) ? ' ' : '!';  // LOCAL or PROXY
    out += static_cast<char>(family) + big_endian(body.size(), 2) + body;
    if (sum && at + 4 <= out.size()) out.replace(at, 4, big_endian(reference::slow_crc32c(out), 4));
    return out;
}

}  // namespace

TEST_CASE("a PROXY header is the one of the slow reading at every split of 20000 drawn streams")
{
    reference::generator random(20261205);
    std::size_t          accepted = 0, local = 0, rejected = 0;
    const auto           steps = reference::steps(20'000);
    for (std::uint64_t step = 0; step < steps; ++step) {
        auto stream = reference::chance(random, 50) ? line(random) : block(random);
        if (reference::chance(random, 10))
            stream[random() % stream.size()] = static_cast<char>(random() % 256);
        stream += std::string(random() % 4, 'c');
        const auto wrong = reference::wrong_proxy(stream, reference::chance(random, 90) ? 536 : 64);
        if (!wrong.empty()) FAIL("step " << step << ": " << wrong);

        const auto reading = weir::read_proxy_header(stream);
        accepted += reading.state == weir::proxy_state::accepted && !reading.header.local;
        local += reading.state == weir::proxy_state::accepted && reading.header.local;
        rejected += reading.state == weir::proxy_state::rejected;
    }
    // The draw is worth little if one kind of answer is rare.
    CHECK(accepted > steps / 10);
    CHECK(local > steps / 20);
    CHECK(rejected > steps / 10);
}
