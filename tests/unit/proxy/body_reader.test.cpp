// SPDX-License-Identifier: BSL-1.0

#include "body_reader.hpp"

#include "catch.hpp"
#include "reference/table.hpp"

#include <string>
#include <string_view>

namespace {

using proxy::body_plan;
using proxy::body_reader;

std::string with_line_ends(std::string_view text)
{
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\r\n") : std::string(1, c);
    return out;
}

body_plan plan_of(const std::string& text)
{
    if (text == "none") return {};
    if (text == "chunked") return {.by = body_plan::kind::chunked};
    if (text == "until_close") return {.by = body_plan::kind::until_close};
    return {.by = body_plan::kind::length, .length = std::stoull(text.substr(7))};
}

struct outcome {
    std::string end;
    std::string content;
};

/// Fed in pieces of `size` bytes.
outcome read(const body_plan& plan, std::string_view bytes, std::size_t size)
{
    body_reader body(plan);
    outcome     made;
    std::size_t took = 0;
    while (took < bytes.size() && !body.done() && !body.bad())
        took += body.feed(bytes.substr(took, size),
                          [&](std::string_view piece) { made.content += piece; });
    made.end = body.bad() ? "bad" : body.done() ? std::to_string(took) : "more";
    return made;
}

body_reader fed(const body_plan& plan, std::string_view bytes)
{
    body_reader body(plan);
    body.feed(bytes);
    return body;
}

constexpr body_plan chunked{.by = body_plan::kind::chunked};

}  // namespace

TEST_CASE("a body ends where the rows say, and has their content, whole and in pieces", "[proxy]")
{
    for (const auto& row : reference::table("http_body.tsv", 5)) {
        const auto bytes = with_line_ends(row[4]);
        for (std::size_t size = 1; size <= bytes.size(); ++size) {
            INFO("row " << row[0] << " in pieces of " << size);
            const auto made = read(plan_of(row[1]), bytes, size);
            CHECK(made.end == row[2]);
            CHECK(made.content == row[3]);
        }
    }
}

TEST_CASE("extensions and trailers of a message have 8 KiB together and no byte more", "[proxy]")
{
    const std::string half(4'095, 'a');  // with the semicolon, and below with the colon
    const auto        body = "1;" + half + "\r\nx\r\n0\r\n" + half + ":";
    CHECK_FALSE(fed(chunked, body + "\r\n\r\n").bad());
    CHECK(fed(chunked, body + "\r\n\r\n").done());
    CHECK(fed(chunked, body + "aa\r\n\r\n").bad());
}

TEST_CASE("a sender that closes ends a body that has no other end, and breaks off all others",
          "[proxy]")
{
    auto open = fed({.by = body_plan::kind::until_close}, "abc");
    CHECK_FALSE(open.done());
    open.end();
    CHECK(open.done());

    auto length = fed({.by = body_plan::kind::length, .length = 4}, "abc");
    length.end();
    CHECK(length.bad());

    auto chunks = fed(chunked, "3\r\nabc\r\n");
    chunks.end();
    CHECK(chunks.bad());
}

TEST_CASE("what is bad stays bad and takes nothing more", "[proxy]")
{
    auto body = fed(chunked, "x");
    REQUIRE(body.bad());
    CHECK(body.feed("5\r\nhello\r\n0\r\n\r\n") == 0);
    CHECK(body.bad());
}
