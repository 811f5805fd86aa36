// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/tls_records.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "reference/made_hello.hpp"
#include "reference/table.hpp"

using reference::records;
using weir::hello_fault;
using weir::hello_state;
using weir::tls_records;

namespace {

/// A reader with room of its own.
struct reader : std::vector<char>, tls_records {
    explicit reader(std::size_t room = 65'536)
        : std::vector<char>(room), tls_records(std::span<char>(*this))
    {
    }
};

std::string outcome(const std::string& stream, std::size_t room = 65'536)
{
    reader it(room);
    it.feed(stream);
    if (it.state() == hello_state::need_more) return "need_more";
    return it.fault() ? std::string(name(*it.fault())) : "complete";
}

std::vector<std::string> captured()
{
    std::vector<std::string> all;
    for (const auto& row : reference::table("hellos/vectors.tsv", 5))
        if (row[1] == "t") all.push_back(reference::hello_file(row[0]));
    return all;
}

constexpr bool reads_at_compile_time()
{
    std::array<char, 64> room{};
    tls_records          it(room);
    return it.feed("\x16\x03") == hello_state::need_more && it.feed("\x01") == it.state() &&
           it.feed("\x40\x01") == hello_state::no_hello;
}
static_assert(reads_at_compile_time());

}  // namespace

TEST_CASE("H01: the same hello comes out of one record, or many, with other data behind",
          "[tls_records]")
{
    const auto all = captured();
    REQUIRE(all.size() == 49);
    for (const auto& message : all)
        for (const std::size_t most : {16'384U, 100U, 64U, 1U}) {
            reader it;
            it.feed(records(message, most) + "\x17\x03\x03 whatever follows");
            REQUIRE(it.state() == hello_state::complete);
            CHECK(it.message() == message);
            CHECK(it.hello()->ciphers.size() > 0);
            CHECK_FALSE(it.fault());
        }
}

TEST_CASE("H02: every beginning of a hello needs more, however its bytes arrive", "[tls_records]")
{
    for (const auto& message : captured()) {
        if (message.size() > 3000) continue;
        const auto stream = records(message, 100);
        reader     it;
        bool       early = false;
        for (std::size_t i = 0; i + 1 < stream.size(); ++i)
            early = early || it.feed(stream.substr(i, 1)) != hello_state::need_more;
        CHECK_FALSE(early);
        CHECK(it.feed(stream.substr(stream.size() - 1)) == hello_state::complete);
        CHECK(it.message() == message);
    }
}

TEST_CASE("H05: pieces of 37 bytes make the same hello, and what came before is not read twice",
          "[tls_records]")
{
    const auto message = reference::hello_file("chromium_1-1.hex");
    const auto stream  = records(message);
    reader     it;
    for (std::size_t at = 0; at < stream.size(); at += 37) it.feed(stream.substr(at, 37));
    REQUIRE(it.state() == hello_state::complete);
    CHECK(it.message() == message);
    CHECK(it.feed("GET / HTTP/1.1\r\n") == hello_state::complete);
    CHECK(it.message() == message);
}

TEST_CASE("H03: what cannot become a hello is told with the byte that shows it", "[tls_records]")
{
    CHECK(outcome("GET / HTTP/1.1\r\n") == "not_tls");
    CHECK(outcome("G") == "not_tls");
    CHECK(outcome("\x15") == "not_tls");      // an alert
    CHECK(outcome("\x16\x02") == "not_tls");  // no version that TLS ever had
    CHECK(outcome(std::string("\x16\x03\x01\0\0", 5)) == "bad_record");
    CHECK(outcome("\x16\x03\x01\x40\x01") == "bad_record");
    CHECK(outcome(std::string("\x16\x03\x01\x40\0", 5)) == "need_more");
    CHECK(outcome(std::string("\x16\x03\x01\0\4\2", 6)) == "not_client_hello");
    const std::string long_one("\x16\x03\x01\0\4\1\1\0\0", 9);
    CHECK(outcome(long_one) == "too_long");
    CHECK(outcome(long_one.substr(0, 8)) == "need_more");
    CHECK(outcome(std::string("\x16\x03\x01\0\4\1\0\x40\0", 9), 16'384) == "too_long");
}

TEST_CASE("another kind of record between the parts of a hello ends it", "[tls_records]")
{
    const auto message = reference::made_hello{}.message();
    const auto first = records(message.substr(0, 20)), second = records(message.substr(20));
    CHECK(outcome(first + second) == "complete");
    CHECK(outcome(first + std::string("\x15\x03\x03\0\2\1\0", 7) + second) == "not_tls");
    CHECK(outcome(first + std::string("\x16\x03\x03\0\0", 5) + second) == "bad_record");
}

TEST_CASE("room for exactly the hello is enough and one byte less is not", "[tls_records]")
{
    const auto message = reference::hello_file("curl_openssl_h2-1.hex");
    CHECK(outcome(records(message), message.size()) == "complete");
    CHECK(outcome(records(message), message.size() - 1) == "too_long");
    CHECK(outcome(records(message), 3) == "too_long");
    CHECK(outcome(records(message), 0) == "too_long");
}

TEST_CASE("H04: a hello whose lengths do not fit is malformed once it is whole", "[tls_records]")
{
    auto message = reference::made_hello{}.message();
    message[38]  = 33;  // the length of its session id
    CHECK(outcome(records(message)) == "malformed");
    CHECK(outcome(records(message).substr(0, message.size())) == "need_more");
}
