// SPDX-License-Identifier: BSL-1.0

#include "head.hpp"

#include "catch.hpp"
#include "reference/table.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using kind = proxy::body_plan::kind;

std::string with_line_ends(std::string_view text)
{
    std::string out;
    for (const char c : text) out += c == '|' ? std::string("\r\n") : std::string(1, c);
    return out;
}

std::string text_of(const proxy::body_plan& plan)
{
    switch (plan.by) {
    case kind::none:
        return "none";
    case kind::length:
        return "length " + std::to_string(plan.length);
    case kind::chunked:
        return "chunked";
    case kind::until_close:
        break;
    }
    return "until_close";
}

int read(std::string_view bytes, std::string_view, proxy::request_head& into)
{
    return read_head(bytes, into);
}
int read(std::string_view bytes, std::string_view method, proxy::response_head& into)
{
    return read_head(bytes, method, into);
}

/// A row, and that nothing but 0 is told of the beginnings of a head.
template <class Head>
void check(const reference::row& row)
{
    Head       head;
    const auto bytes  = with_line_ends(row[5]);
    const int  status = read(bytes, row[1], head);
    CHECK(std::to_string(status) == row[2]);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        Head       part;
        const int  told  = read(bytes.substr(0, size), row[1], part);
        const bool whole = status == 200 && size >= head.bytes;
        if (whole ? told != 200 : told != 0 && (status == 200 || told != status))
            FAIL_CHECK("of the first " << size << " bytes it tells " << told);
    }
    if (status != 200) return;
    CHECK(text_of(head.body) == row[3]);
    CHECK((head.keep_alive ? "yes" : "no") == row[4]);
    CHECK(bytes.substr(head.bytes - 4, 4) == "\r\n\r\n");
}

proxy::request_head request(std::string_view text)
{
    static std::string  kept;  // the head borrows from it
    proxy::request_head head;
    kept = with_line_ends(text);
    REQUIRE(read_head(kept, head) == 200);
    return head;
}

}  // namespace

TEST_CASE("a head is read as the rows say, and needs all of its bytes", "[proxy]")
{
    for (const auto& row : reference::table("http_head.tsv", 6)) {
        INFO("row " << row[0]);
        if (row[1] == "-") check<proxy::request_head>(row);
        else check<proxy::response_head>(row);
    }
}

TEST_CASE("an absolute target stands for its path and for Host", "[proxy]")
{
    const auto head = request("GET HTTPS://b:81/x?y HTTP/1.1|Host: a||");
    CHECK(head.target == "/x?y");
    CHECK(head.authority == "b:81");
    CHECK(request("GET http://b HTTP/1.1|Host: a||").target == "/");
    CHECK(request("GET /x HTTP/1.1|Host: a||").authority == "a");
}

TEST_CASE("100-continue is expected only of HTTP/1.1 and only before a body", "[proxy]")
{
    const std::string body = "Content-Length: 1||";
    CHECK(request("PUT / HTTP/1.1|Host: a|Expect: 100-Continue|" + body).expects);
    CHECK_FALSE(request("PUT / HTTP/1.0|Expect: 100-continue|" + body).expects);
    CHECK_FALSE(request("GET / HTTP/1.1|Host: a|Expect: 100-continue||").expects);
}

TEST_CASE("a value is without the blanks around it, and lines stay in order", "[proxy]")
{
    const auto head = request("GET / HTTP/1.1|Host:a|X: \t b  c\t|x:|X: d||");
    REQUIRE(head.lines.size() == 4);
    CHECK(head.lines[1].value == "b  c");
    CHECK(head.lines[2].name == "x");
    CHECK(head.lines[2].value.empty());
    CHECK(head.lines[3].value == "d");
    CHECK(head.first(proxy::field::host) == "a");
}

TEST_CASE("fields that Connection names are for this hop, in either case", "[proxy]")
{
    const auto head = request("GET / HTTP/1.1|Host: a|Connection: close, X-Own ,,|Connection: B||");
    CHECK(head.names_hops);
    CHECK(head.is_hop("x-own"));
    CHECK(head.is_hop("b"));
    CHECK_FALSE(head.is_hop("x"));
    CHECK_FALSE(request("GET / HTTP/1.1|Host: a|Connection: close||").names_hops);
}

TEST_CASE("a head that is read again keeps nothing of the one before", "[proxy]")
{
    proxy::request_head head;
    const auto          first = with_line_ends("PUT http://b/ HTTP/1.0|Content-Length: 7||");
    const auto          then  = with_line_ends("GET / HTTP/1.1|Host: a||");
    REQUIRE(read_head(first, head) == 200);
    REQUIRE(read_head(then, head) == 200);
    CHECK(head.lines.size() == 1);
    CHECK(head.kinds.size() == 1);
    CHECK(head.authority == "a");
    CHECK(text_of(head.body) == "none");
    CHECK(head.keep_alive);
}

TEST_CASE("a name is known in either case and by all of its letters", "[proxy]")
{
    CHECK(proxy::field_named("tRANSFER-eNCODING") == proxy::field::transfer_encoding);
    CHECK(proxy::field_named("te") == proxy::field::hop);
    CHECK(proxy::field_named("Transfer_Encoding") == proxy::field::other);
    CHECK(proxy::field_named("Content-Lengt") == proxy::field::other);
    CHECK(proxy::field_named("Content-Length2") == proxy::field::other);
    CHECK(proxy::field_named("") == proxy::field::other);
    CHECK(proxy::field_named(std::string(500, 'a')) == proxy::field::other);
}
