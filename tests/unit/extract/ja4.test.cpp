// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/ja4.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "reference/made_hello.hpp"
#include "reference/slow_hello.hpp"
#include "reference/table.hpp"
#include "weir/extract/missing_key.hpp"
#include "weir/extract/tls_records.hpp"

using reference::made_hello;
using weir::ja4;
using weir::ja4_o;
using weir::ja4_r;
using weir::stable_key;
using weir::tls_fingerprint;

using codes = std::vector<std::uint16_t>;

namespace {

/// A hello together with the bytes it borrows.
struct read_hello {
    explicit read_hello(std::string message, const weir::hello_options& options = {})
        : bytes(std::move(message)), reading(weir::read_client_hello(bytes, options))
    {
        REQUIRE(reading.state == weir::hello_state::complete);
    }
    read_hello(const read_hello&) = delete;

    operator const weir::client_hello&() const { return reading.hello; }

    std::string         bytes;
    weir::hello_reading reading;
};

std::string ja4_of(const std::string& message)
{
    return std::string(ja4(read_hello(message)).bytes());
}

std::string text_of(std::size_t (*form)(const weir::client_hello&, std::span<char>) noexcept,
                    const weir::client_hello& hello)
{
    std::string text(form(hello, {}), '\0');
    CHECK(form(hello, text) == text.size());
    return text;
}

/// The example of FoxIO's text, with a signature algorithm put first.
std::string example(const codes& more_signatures = {})
{
    codes signatures = more_signatures;
    for (const std::uint16_t one :
         codes{0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601})
        signatures.push_back(one);
    made_hello made{.ciphers = {0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9,
                                0xcca8, 0xc013, 0xc014, 0x009c, 0x009d, 0x002f, 0x0035}};
    for (const std::uint16_t type : codes{0x001b, 0x0000, 0x0033, 0x4469, 0x0017, 0x002d, 0x0005,
                                          0x0023, 0x0012, 0xff01, 0x000b, 0x000a, 0x0015})
        made.extensions.push_back({type, ""});
    made.extensions.push_back(reference::protocols("\2h2"));
    made.extensions.push_back(reference::versions({0x0304, 0x0303}));
    made.extensions.push_back(reference::signatures(signatures));
    return made.message();
}

}  // namespace

TEST_CASE("every captured and built hello has the fingerprints of its row", "[ja4]")
{
    std::size_t files = 0;
    for (const auto& row : reference::table("hellos/vectors.tsv", 5)) {
        if (row[0] == "file") continue;
        INFO(row[0]);
        const auto       transport = row[1] == "q"   ? weir::hello_transport::quic
                                     : row[1] == "d" ? weir::hello_transport::dtls
                                                     : weir::hello_transport::tls;
        const read_hello hello(reference::hello_file(row[0]), {.transport = transport});
        CHECK(std::to_string(hello.bytes.size()) == row[2]);
        CHECK(ja4(hello).bytes() == row[3]);
        CHECK(stable_key(hello).bytes() == row[4]);
        ++files;
    }
    CHECK(files == 51);
}

TEST_CASE("every row of ja4.tsv has its four forms", "[ja4]")
{
    for (const auto& row : reference::table("ja4.tsv", 6)) {
        INFO(row[0]);
        const auto        stream = reference::from_hex(row[5]);
        std::vector<char> room(stream.size());
        weir::tls_records records(room);
        REQUIRE(records.feed(stream) == weir::hello_state::complete);
        const auto& hello = *records.hello();
        CHECK(ja4(hello).bytes() == row[1]);
        if (row[2] != "-") CHECK(ja4_o(hello).bytes() == row[2]);
        if (row[3] != "-") CHECK(text_of(weir::ja4_r, hello) == row[3]);
        if (row[4] != "-") CHECK(text_of(weir::ja4_ro, hello) == row[4]);
    }
}

TEST_CASE("every row of ja4_alpn.tsv has its two characters", "[ja4]")
{
    for (const auto& row : reference::table("ja4_alpn.tsv", 3)) {
        INFO(row[0]);
        made_hello made;
        if (row[2] != "-")
            made.extensions.push_back(reference::protocols(reference::from_hex(row[2])));
        CHECK(ja4_of(made.message()).substr(8, 2) == row[1]);
    }
}

TEST_CASE("O51: GREASE among the signature algorithms changes nothing", "[ja4]")
{
    const std::string expected = "t13d1516h2_8daaf6152771_e5627efa2ab1";
    CHECK(ja4_of(example()) == expected);
    for (const std::uint16_t grease : codes{0x0a0a, 0x1a1a, 0xfafa})
        CHECK(ja4_of(example({grease})) == expected);
    for (const std::uint16_t other : codes{0x0a1a, 0xabab, 0x0a0b})
        CHECK(ja4_of(example({other})) != expected);
}

TEST_CASE("J1: without signature algorithms, ciphers or extensions the parts are those of the text",
          "[ja4]")
{
    const read_hello hello(example());
    auto             bare = hello.reading.hello;
    bare.signature_algorithms.reset();
    CHECK(ja4(bare).bytes() == "t13d1516h2_8daaf6152771_6d807ffa2a79");
    bare.ciphers = {};
    CHECK(ja4(bare).bytes() == "t13d0016h2_000000000000_6d807ffa2a79");
    bare.extensions = {};
    CHECK(ja4(bare).bytes() == "t13d0000h2_000000000000_000000000000");
}

TEST_CASE("2.23: shuffled ciphers and extensions keep the fingerprint, and JA4_o tells them apart",
          "[ja4]")
{
    made_hello made{.ciphers    = {0x1301, 0x1302, 0xc02f},
                    .extensions = {{5, ""}, {0x17, ""}, {1, ""}}};
    const auto before = made.message();
    std::reverse(made.ciphers.begin(), made.ciphers.end());
    std::rotate(made.extensions.begin(), made.extensions.begin() + 1, made.extensions.end());
    const auto after = made.message();
    CHECK(ja4_of(before) == ja4_of(after));
    CHECK(ja4_o(read_hello(before)) != ja4_o(read_hello(after)));

    made.ciphers[0] = 0xc030;
    CHECK(ja4_of(made.message()) != ja4_of(after));
}

TEST_CASE("counts stop at 99 and the lists do not", "[ja4]")
{
    made_hello made{.ciphers = {}};
    for (std::uint16_t i = 0; i < 99; ++i)
        made.ciphers.push_back(static_cast<std::uint16_t>(i + 256));
    const auto exact = ja4_of(made.message());
    made.ciphers.push_back(0x5600);
    const auto more = ja4_of(made.message());
    CHECK(exact.substr(4, 2) == "99");
    CHECK(more.substr(4, 2) == "99");
    CHECK(more.substr(11) != exact.substr(11));
}

TEST_CASE("lists of every length around 256 and of thousands are those of the slow reading",
          "[ja4]")
{
    reference::generator random(20261130);
    for (const std::size_t size : {255U, 256U, 257U, 4000U, 32'000U}) {
        made_hello made{.ciphers = {}};
        while (made.ciphers.size() < size)
            made.ciphers.push_back(
                static_cast<std::uint16_t>(random() % (size > 4000 ? 40 : 65'536)));
        while (made.extensions.size() < std::min<std::size_t>(size, 4000))
            made.extensions.push_back({static_cast<std::uint16_t>(256 + random() % 65'000), ""});
        const auto       message = made.message();
        const read_hello hello(message, {.most_bytes = 1'000'000});
        CHECK(reference::words(hello) == reference::slow_hello(message, 't', 1'000'000));
    }
}

TEST_CASE("resumption, tickets, early data and padding change JA4 and not the stable key", "[ja4]")
{
    made_hello made{.extensions = {reference::versions({0x0304}), {10, "x"}}};
    const auto bare   = made.message();
    const auto stable = stable_key(read_hello(bare));
    CHECK(stable.bytes() == ja4_of(bare));
    for (const std::uint16_t type : codes{0x0015, 0x0023, 0x0029, 0x002a}) {
        made.extensions.push_back({type, "data"});
        CHECK(ja4_of(made.message()) != ja4_of(bare));
        CHECK(stable_key(read_hello(made.message())) == stable);
    }
    made.extensions.push_back({0x0022, ""});
    CHECK(stable_key(read_hello(made.message())) != stable);
}

TEST_CASE("DTLS takes the smallest number for the newest version and TLS the largest", "[ja4]")
{
    const made_hello made{.version    = 0xfefd,
                          .extensions = {reference::versions({0xfefd, 0xfefc, 0xfeff})}};
    const read_hello dtls(made.dtls_message(), {.transport = weir::hello_transport::dtls});
    CHECK(ja4(dtls).outline().substr(0, 3) == "dd3");
    CHECK(ja4_of(made.message()).substr(0, 3) == "td1");
}

TEST_CASE("versions have the digits of the text, and any other 00", "[ja4]")
{
    for (const auto& [version, digits] :
         std::vector<std::pair<std::uint16_t, std::string>>{{0x0304, "13"},
                                                            {0x0303, "12"},
                                                            {0x0302, "11"},
                                                            {0x0301, "10"},
                                                            {0x0300, "s3"},
                                                            {0x0002, "s2"},
                                                            {0xfeff, "d1"},
                                                            {0xfefd, "d2"},
                                                            {0xfefc, "d3"},
                                                            {0x0305, "00"},
                                                            {0x0a0a, "00"}}) {
        INFO(version);
        CHECK(ja4_of(made_hello{.version = version}.message()).substr(1, 2) == digits);
        if (version != 0x0a0a)
            CHECK(
                ja4_of(made_hello{.extensions = {reference::versions({version, 0x0a0a})}}.message())
                    .substr(1, 2) == digits);
    }
}

TEST_CASE("a raw form that does not fit fills the room and tells how much it takes", "[ja4]")
{
    const read_hello hello(example());
    const auto       whole = text_of(weir::ja4_r, hello);
    std::string      room(20, '?');
    CHECK(ja4_r(hello, std::span(room).first(12)) == whole.size());
    CHECK(room == whole.substr(0, 12) + "????????");
}

TEST_CASE("a fingerprint is a subject and shows its parts, and none is empty", "[ja4]")
{
    const auto made = ja4(read_hello(example()));
    CHECK(made);
    CHECK(weir::bytes_of(made) == "t13d1516h2_8daaf6152771_e5627efa2ab1");
    CHECK(made.outline() == "t13d1516h2");
    CHECK(made.ciphers() == "8daaf6152771");
    CHECK(step_for(made, weir::missing_key::reject) == weir::key_step::count);

    const tls_fingerprint none;
    CHECK_FALSE(none);
    CHECK(none.bytes().empty());
    CHECK(none.outline().empty());
    CHECK(none.ciphers().empty());
    CHECK(step_for(none, weir::missing_key::pass) == weir::key_step::pass);
}

TEST_CASE("only text of the very form is a fingerprint", "[ja4]")
{
    const std::string good = "t13d1516h2_8daaf6152771_e5627efa2ab1";
    CHECK(tls_fingerprint::parse(good).bytes() == good);
    CHECK(tls_fingerprint::parse("ts3i000000_000000000000_000000000000"));
    CHECK(tls_fingerprint::parse("dd2i9999Zz_000000000000_000000000000"));
    for (std::size_t place = 0; place < good.size(); ++place) {
        auto wrong   = good;
        wrong[place] = place == 10 || place == 23 ? '-' : '_';
        CHECK_FALSE(tls_fingerprint::parse(wrong));
        wrong[place] = '\0';
        CHECK_FALSE(tls_fingerprint::parse(wrong));
    }
    for (const std::string wrong :
         {"", "T13d1516h2_8daaf6152771_e5627efa2ab1", "t13d1516h2_8DAAF6152771_e5627efa2ab1",
          "t13d1516h2_8daaf6152771_e5627efa2ab"})
        CHECK_FALSE(tls_fingerprint::parse(wrong));
    CHECK_FALSE(tls_fingerprint::parse(good + "1"));
}
