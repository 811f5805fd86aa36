// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/request.hpp"

#include <map>
#include <string>
#include <vector>

#include "catch.hpp"

using weir::peer;

namespace {

std::vector<std::string> lines_of(const weir::request& from, std::string_view name)
{
    std::vector<std::string> out;
    from.for_each_line(name, [&](std::string_view value) { out.emplace_back(value); });
    return out;
}

}  // namespace

TEST_CASE("a peer is an address or a Unix socket or unknown and never guessed")
{
    CHECK(peer::parse("203.0.113.7").address() == weir::address::parse("203.0.113.7"));
    CHECK(peer::parse("203.0.113.7:4321").address() == weir::address::parse("203.0.113.7"));
    CHECK(peer::parse("[::ffff:10.0.0.1]:80").address() == weir::address::parse("10.0.0.1"));
    CHECK(peer::parse("fe80::1%eth0") == peer(*weir::address::parse("fe80::1")));
    for (const auto* text : {"unix", "unix:", "unix:/run/app.sock", "@", "@app"}) {
        INFO(text);
        CHECK(peer::parse(text) == peer::unix_socket());
        CHECK_FALSE(peer::parse(text).address().has_value());
    }
    for (const auto* text : {"", "unknown", "unixx", "localhost", "10.0.0.1, 10.0.0.2", "-"}) {
        INFO(text);
        CHECK(peer::parse(text).is_unknown());
        CHECK_FALSE(peer::parse(text).is_unix_socket());
    }
    CHECK(peer{}.is_unknown());
}

TEST_CASE("lines of a name arrive in order whatever the case of the name and no others do")
{
    const std::vector<weir::header_line> lines = {
        {"X-Forwarded-For", "1"}, {"Host", "h"}, {"x-forwarded-for", "2"}, {"X_Forwarded_For", "3"},
        {"X-Forwarded-Fo", "4"},  {"", "5"},     {"X-FORWARDED-FOR", ""}};
    const weir::request all(lines,
                            {.peer = peer::unix_socket(), .method = "GET", .target = "/a?b"});
    CHECK(lines_of(all, "X-Forwarded-For") == std::vector<std::string>{"1", "2", ""});
    CHECK(lines_of(all, "Cookie").empty());
    CHECK(all.method() == "GET");
    CHECK(all.target() == "/a?b");
    CHECK(all.peer().is_unix_socket());
    CHECK(all.lines() == weir::line_fidelity::in_order);
}

TEST_CASE("a server's own request type is read through its adapter")
{
    struct native {
        std::multimap<std::string, std::string> headers;
    };
    const native        from{{{"A", "1"}, {"B", "2"}, {"A", "3"}}};
    const weir::request seen(
        from, {.lines = weir::line_fidelity::any_order},
        [](const native& its, std::string_view name, const weir::line_sink& found) {
            const auto [begin, end] = its.headers.equal_range(std::string(name));
            for (auto at = begin; at != end; ++at) found(at->second);
        });
    CHECK(lines_of(seen, "A") == std::vector<std::string>{"1", "3"});
    CHECK(lines_of(seen, "C").empty());
    CHECK(seen.lines() == weir::line_fidelity::any_order);
    CHECK(seen.peer().is_unknown());
}

TEST_CASE("header names match in ASCII case only")
{
    CHECK(weir::same_header_name("Forwarded", "fORWARDED"));
    CHECK_FALSE(weir::same_header_name("Forwarded", "Forwarded "));
    CHECK_FALSE(weir::same_header_name("\xC4", "\xE4"));
    CHECK_FALSE(weir::same_header_name("[", "{"));
    CHECK_FALSE(weir::same_header_name("@", "`"));
}
