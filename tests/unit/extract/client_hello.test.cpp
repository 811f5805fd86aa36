// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/client_hello.hpp"

#include <string>
#include <string_view>

#include "catch.hpp"
#include "reference/made_hello.hpp"
#include "reference/table.hpp"

using reference::made_hello;
using weir::hello_fault;
using weir::hello_state;
using weir::hello_transport;
using weir::read_client_hello;

namespace {

hello_transport transport_of(const std::string& cell)
{
    if (cell == "q") return hello_transport::quic;
    return cell == "d" ? hello_transport::dtls : hello_transport::tls;
}

std::string outcome(const std::string& stream, const weir::hello_options& options = {})
{
    // From a place of its own size, so that a sanitizer sees a read past its end.
    const std::string own(stream.data(), stream.size());
    const auto        reading = read_client_hello(own, options);
    if (reading.state == hello_state::need_more) return "need_more";
    return reading.fault ? std::string(name(*reading.fault)) : "complete";
}

std::string with_body(const std::string& body) { return '\1' + reference::block(body, 3); }

/// A hello of one extension whose data is `data`.
std::string with(std::uint16_t type, const std::string& data)
{
    return made_hello{.extensions = {{type, data}}}.message();
}

}  // namespace

static_assert(read_client_hello("").state == hello_state::need_more);
static_assert(read_client_hello("").bytes == 4);
static_assert(read_client_hello("\2").fault == hello_fault::not_client_hello);

TEST_CASE("a hello shows what it offers as it was sent", "[client_hello]")
{
    const auto message = made_hello{.version    = 0x0303,
                                    .session_id = "id",
                                    .ciphers    = {0x1301, 0x0a0a, 0xc02f},
                                    .extensions = {reference::server_name("a.test"),
                                                   {0x1234, "x"},
                                                   reference::versions({0x0304, 0x0303}),
                                                   reference::signatures({0x0403}),
                                                   reference::protocols("\2h2\3abc")}}
                             .message();
    const auto stream  = message + "what follows";
    const auto reading = read_client_hello(stream);
    REQUIRE(reading.state == hello_state::complete);
    CHECK(reading.bytes == message.size());

    const auto& hello = reading.hello;
    CHECK(hello.transport == hello_transport::tls);
    CHECK(hello.legacy_version == 0x0303);
    REQUIRE(hello.ciphers.size() == 3);
    CHECK(hello.ciphers[1] == 0x0a0a);
    CHECK(hello.ciphers[2] == 0xc02f);
    CHECK(hello.has_server_name);
    CHECK(hello.supported_versions.value()[0] == 0x0304);
    CHECK(hello.signature_algorithms.value().size() == 1);
    CHECK(hello.first_protocol.value() == "h2");
    std::string types;
    hello.for_each_extension([&](std::uint16_t type) { types += std::to_string(type) + ' '; });
    CHECK(types == "0 4660 43 13 16 ");
}

TEST_CASE("H02: every beginning of every captured hello needs more and asks for no more than all",
          "[client_hello]")
{
    std::size_t files = 0;
    for (const auto& row : reference::table("hellos/vectors.tsv", 5)) {
        if (row[0] == "file") continue;
        INFO(row[0]);
        const auto                message = reference::hello_file(row[0]);
        const weir::hello_options options{.transport = transport_of(row[1])};
        REQUIRE(outcome(message, options) == "complete");
        std::size_t others = 0;
        for (std::size_t size = 0; size < message.size(); ++size) {
            const auto part = read_client_hello(std::string_view(message).substr(0, size), options);
            others += part.state != hello_state::need_more || part.bytes <= size ||
                      part.bytes > message.size();
        }
        CHECK(others == 0);
        ++files;
    }
    CHECK(files == 51);
}

TEST_CASE("O53: every beginning of a built hello needs more, byte for byte", "[client_hello]")
{
    const auto message =
        made_hello{.extensions = {reference::server_name("a.test"), reference::versions({0x0304})}}
            .message();
    for (std::size_t size = 0; size < message.size(); ++size)
        CHECK(outcome(message.substr(0, size)) == "need_more");
}

TEST_CASE("H03: another message is known by its first byte, one that is too long by its fourth",
          "[client_hello]")
{
    CHECK(outcome("\2") == "not_client_hello");
    CHECK(outcome("GET / HTTP/1.1\r\n") == "not_client_hello");
    CHECK(outcome(std::string("\1\1\0\0", 4)) == "too_long");  // 65,540 bytes
    CHECK(outcome(std::string("\1\0\xff\xfc", 4)) == "need_more");
    CHECK(outcome(std::string("\1\0\x40\0", 4), {.most_bytes = 16'384}) == "too_long");
    CHECK(outcome(std::string("\1\0\x3f\xfc", 4), {.most_bytes = 16'384}) == "need_more");
}

TEST_CASE("a hello of exactly the most bytes is read and one byte more is not", "[client_hello]")
{
    const auto message = made_hello{}.message();
    CHECK(outcome(message, {.most_bytes = message.size()}) == "complete");
    CHECK(outcome(message, {.most_bytes = message.size() - 1}) == "too_long");
}

TEST_CASE("H04: a body whose lengths do not fit makes no hello", "[client_hello]")
{
    const auto body =
        made_hello{.session_id = "0123", .extensions = {reference::server_name("a.test")}}.body();
    REQUIRE(outcome(with_body(body)) == "complete");
    for (std::size_t cut = 0; cut < body.size(); ++cut) {
        INFO(cut << " bytes of the body");
        // Cut behind the compression methods, it is a hello without extensions.
        const bool whole = cut == made_hello{.session_id = "0123"}.body().size();
        CHECK(outcome(with_body(body.substr(0, cut))) == (whole ? "complete" : "malformed"));
    }
    CHECK(outcome(with_body(body + 'x')) == "malformed");
    CHECK(outcome(with_body(made_hello{}.body() + 'x')) == "malformed");

    const made_hello longest{.session_id = std::string(32, 'i')};
    const made_hello longer{.session_id = std::string(33, 'i')};
    CHECK(outcome(longest.message()) == "complete");
    CHECK(outcome(longer.message()) == "malformed");

    auto odd =
        made_hello{}.body();  // three bytes of ciphers, and the last one a compression length
    odd[36] = 3;
    CHECK(outcome(with_body(odd)) == "malformed");
}

TEST_CASE("an extension that is read fills its length exactly, and no other is looked into",
          "[client_hello]")
{
    CHECK(outcome(with(43, std::string("\2\3\4", 3))) == "complete");
    CHECK(outcome(with(43, std::string("\0", 1))) == "complete");
    CHECK(outcome(with(43, "")) == "malformed");
    CHECK(outcome(with(43, std::string("\3\3\4\3", 4))) == "malformed");
    CHECK(outcome(with(43, std::string("\2\3", 2))) == "malformed");
    CHECK(outcome(with(43, std::string("\2\3\4\3", 4))) == "malformed");

    CHECK(outcome(with(13, std::string("\0\2\4\3", 4))) == "complete");
    CHECK(outcome(with(13, std::string("\0\0", 2))) == "complete");
    CHECK(outcome(with(13, std::string("\0\1\4", 3))) == "malformed");
    CHECK(outcome(with(13, std::string("\0\4\4\3", 4))) == "malformed");

    CHECK(outcome(with(16, std::string("\0\3\2h2", 5))) == "complete");
    CHECK(outcome(with(16, std::string("\0\0", 2))) == "complete");
    CHECK(outcome(with(16, std::string("\0\4\2h2\1", 6))) == "malformed");
    CHECK(outcome(with(16, std::string("\0\3\3h2", 5))) == "malformed");
    CHECK(outcome(with(16, std::string("\0\2\2h2", 5))) == "malformed");

    for (const auto type : {0, 1, 10, 0x0a0a, 51, 0xffff})
        CHECK(outcome(with(static_cast<std::uint16_t>(type), "\xff\xff\xff")) == "complete");
}

TEST_CASE("of an extension that is there twice the first counts", "[client_hello]")
{
    const auto message =
        made_hello{.extensions = {reference::protocols("\2h2"), reference::versions({0x0303}),
                                  reference::signatures({}), reference::protocols("\2h1"),
                                  reference::versions({0x0304}), reference::signatures({0x0403})}}
            .message();
    const auto hello = read_client_hello(message).hello;
    CHECK(hello.first_protocol.value() == "h2");
    CHECK(hello.supported_versions.value()[0] == 0x0303);
    CHECK(hello.signature_algorithms.value().size() == 0);
}

TEST_CASE("DTLS has a header of twelve bytes and a cookie, and a part of a message is no hello",
          "[client_hello]")
{
    const weir::hello_options dtls{.transport = hello_transport::dtls};
    const made_hello          made{.version = 0xfefd, .cookie = "biscuit", .ciphers = {0xc02f}};
    const auto                message = made.dtls_message();
    const auto                reading = read_client_hello(message, dtls);
    REQUIRE(reading.state == hello_state::complete);
    CHECK(reading.bytes == message.size());
    CHECK(reading.hello.ciphers[0] == 0xc02f);
    for (std::size_t size = 0; size < message.size(); ++size)
        CHECK(outcome(message.substr(0, size), dtls) == "need_more");

    auto later = message, shorter = message;
    later[8]    = 1;   // begins at byte 1
    shorter[11] = 10;  // ends after ten
    CHECK(outcome(later, dtls) == "fragmented");
    CHECK(outcome(shorter, dtls) == "fragmented");
    CHECK(outcome(made.message(), dtls) != "complete");
    CHECK(outcome(message) == "malformed");  // read as TLS, whose header is shorter
}

TEST_CASE("every fault has a name of its own", "[client_hello]")
{
    CHECK(name(hello_fault::not_tls) == "not_tls");
    CHECK(name(hello_fault::bad_record) == "bad_record");
    CHECK(name(hello_fault::not_client_hello) == "not_client_hello");
    CHECK(name(hello_fault::too_long) == "too_long");
    CHECK(name(hello_fault::fragmented) == "fragmented");
    CHECK(name(hello_fault::malformed) == "malformed");
}
