// SPDX-License-Identifier: BSL-1.0

#include "weir/adapt/beast.hpp"

#include "weir/extract/client_ip.hpp"

#include "catch.hpp"

#include <boost/beast/core/ostream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using namespace std::chrono_literals;

namespace {

constexpr weir::decision refused{.verdict     = weir::verdict::refused,
                                 .limiter     = "ip",
                                 .limit       = 60,
                                 .window      = 60s,
                                 .retry_after = 30s};
constexpr std::string_view refusal_text = "Too many requests. Try again in 30 seconds.\n";

using parser = http::request_parser<http::string_body>;

/// Reads what came over the wire until now.
void feed(parser& into, std::string_view wire)
{
    boost::beast::error_code failed;
    into.eager(true);
    into.put(asio::buffer(wire.data(), wire.size()), failed);
    if (failed != http::error::need_more) REQUIRE_FALSE(failed);
}

http::request<http::string_body> parsed(std::string_view wire)
{
    parser whole;
    feed(whole, wire);
    REQUIRE(whole.is_done());
    return whole.release();
}

asio::ip::tcp::endpoint at(const char* address)
{
    return {asio::ip::make_address(address), 4321};
}

std::string written(const weir::beast_refusal& response)
{
    std::ostringstream out;
    out << response;
    return out.str();
}

std::vector<std::string> lines(const weir::request& from, std::string_view name)
{
    std::vector<std::string> found;
    from.for_each_line(name, [&](std::string_view line) { found.emplace_back(line); });
    return found;
}

}  // namespace

TEST_CASE("a beast view shows method, target and the peer of the socket", "[beast]")
{
    const auto native = parsed("PATCH /a%20b?c=d HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto seen   = weir::view(native, at("198.51.100.4"));
    CHECK(seen.method() == "PATCH");
    CHECK(seen.target() == "/a%20b?c=d");
    CHECK(seen.peer() == weir::peer::parse("198.51.100.4"));
    CHECK(seen.lines() == weir::line_fidelity::in_order);
}

TEST_CASE("a method that Beast has no word for is shown as it was sent", "[beast]")
{
    const auto native = parsed("BREW / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(weir::view(native, at("::1")).method() == "BREW");
}

TEST_CASE("a view shows lines of one name one by one, in the order of the wire", "[beast]")
{
    const auto native = parsed("GET / HTTP/1.1\r\nX-Forwarded-For: 1.1.1.1, 2.2.2.2\r\n"
                               "Host: a\r\nx-forwarded-for: 3.3.3.3\r\nOther: 9.9.9.9\r\n"
                               "X-FORWARDED-FOR: 4.4.4.4\r\n\r\n");
    const auto seen = weir::view(native, at("10.0.0.1"));
    CHECK(lines(seen, "x-Forwarded-for") ==
          std::vector<std::string>{"1.1.1.1, 2.2.2.2", "3.3.3.3", "4.4.4.4"});
    CHECK(lines(seen, "Forwarded").empty());
    CHECK(lines(seen, "my-own").empty());
}

TEST_CASE("a proxy that adds a line of its own names the client, not the line before (F52)",
          "[beast]")
{
    const weir::client_ip source({.trusted_hops = 1, .warn = nullptr});
    const auto native = parsed("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\n"
                               "X-Forwarded-For: 203.0.113.9\r\n\r\n");
    CHECK(weir::to_string(source(weir::view(native, at("10.0.0.1")))) == "203.0.113.9");
}

TEST_CASE("the peer of a socket that listens on both families is IPv4 when the client is",
          "[beast]")
{
    CHECK(weir::peer_of(at("::ffff:203.0.113.9")) == weir::peer::parse("203.0.113.9"));
    CHECK(weir::peer_of(at("fe80::1%1")) == weir::peer::parse("fe80::1"));
    CHECK(weir::peer_of(at("2001:db8::7")) == weir::peer::parse("2001:db8::7"));
}

TEST_CASE("all clients of a Unix socket are one subject (F51)", "[beast]")
{
    const weir::client_ip source({.trusted_hops = 1, .warn = nullptr});
    const auto one   = parsed("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.1.1.1\r\n\r\n");
    const auto other = parsed("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2.2.2.2\r\n\r\n");
    const auto first = source(weir::view(one, weir::peer::unix_socket()));
    CHECK_FALSE(first);
    CHECK(first.bytes() == source(weir::view(other, weir::peer::unix_socket())).bytes());
}

TEST_CASE("a refusal is status, fields and body, and nothing else", "[beast]")
{
    const auto native = parsed("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(written(weir::refuse(native, refused)) ==
          "HTTP/1.1 429 Too Many Requests\r\n"
          "Content-Type: text/plain; charset=utf-8\r\n"
          "Cache-Control: no-store\r\n"
          "Retry-After: 30\r\n"
          "Content-Length: 44\r\n\r\n" + std::string(refusal_text));
}

TEST_CASE("a refused HEAD is told the length of the body it does not get", "[beast]")
{
    const auto native = parsed("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    const auto wire   = written(weir::refuse(native, refused));
    CHECK(wire.find("Content-Length: 44\r\n") != wire.npos);
    CHECK(wire.ends_with("\r\n\r\n"));
}

TEST_CASE("a refusal keeps the connection if the request asked for it", "[beast]")
{
    struct row {
        const char* wire;
        bool        kept;
    };
    const auto each =
        GENERATE(row{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
                 row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false},
                 row{"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade, Close\r\n\r\n", false},
                 row{"GET / HTTP/1.0\r\n\r\n", false},
                 row{"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true});
    INFO(each.wire);
    const auto native = parsed(each.wire);
    CHECK(native.keep_alive() == each.kept);  // what Beast itself reads
    CHECK(weir::refuse(native, refused).keep_alive() == each.kept);
}

TEST_CASE("a request with an unread body is refused with Connection: close", "[beast]")
{
    constexpr std::string_view head = "POST /f HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    parser                     from;
    feed(from, head);
    CHECK_FALSE(weir::refuse(from, refused).keep_alive());

    feed(from, "a=b");
    CHECK(weir::refuse(from, refused).keep_alive());
}

TEST_CASE("a chunked body whose end is missing counts as unread", "[beast]")
{
    parser from;
    feed(from, "POST /f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK_FALSE(weir::refuse(from, refused).keep_alive());
    feed(from, "3\r\na=b\r\n0\r\n\r\n");
    CHECK(weir::refuse(from, refused).keep_alive());
}

TEST_CASE("options of a refusal arrive, and a store that is away is a 503 (beast)", "[beast]")
{
    const auto native   = parsed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    const auto envelope = weir::refuse(native, refused, {.body = weir::refusal_body::envelope});
    CHECK(envelope[http::field::content_type] == "application/json");
    CHECK(envelope.body().find(R"("scope":"ip")") != std::string::npos);

    auto away  = refused;
    away.basis = weir::basis::store_unavailable;
    away.retry_after.reset();
    const auto down = weir::refuse(native, away);
    CHECK(down.result_int() == 503);
    CHECK(down.count(http::field::retry_after) == 0);
}
