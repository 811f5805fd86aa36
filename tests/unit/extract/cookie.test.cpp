// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/cookie.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "reference/table.hpp"

using weir::absence;
using weir::cookie;

namespace {

std::vector<weir::header_line> lines_of(const std::vector<std::string>& values)
{
    std::vector<weir::header_line> out;
    for (const auto& value : values) out.push_back({"cookie", value});
    return out;
}

std::string pairs(std::size_t count)
{
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += "a=b;";
    return out;
}

}  // namespace

TEST_CASE("a cookie has the value that the rows say or the reason why it has none")
{
    for (const auto& row : reference::table("cookie.tsv", 5)) {
        INFO("row " << row[0]);
        const std::vector<std::string> values(row.begin() + 4, row.end());
        const auto                     lines = lines_of(values);
        const auto                     found = cookie(row[1])(weir::request(lines, {}));
        CHECK((found ? "-" : name(*found.why())) == row[2]);
        CHECK(found.bytes() == (found ? row[3] : ""));
    }
}

TEST_CASE("a request without a Cookie line has no cookie")
{
    const weir::header_line lines[] = {{"Set-Cookie", "id=1"}, {"Cookies", "id=2"}};
    CHECK(cookie("id")(weir::request(lines, {})).why() == absence::missing);
}

TEST_CASE("lines whose order is lost name a cookie only if they agree")
{
    const auto ask = [](const std::vector<std::string>& values) {
        const auto lines = lines_of(values);
        return cookie("id")(weir::request(lines, {.lines = weir::line_fidelity::any_order}));
    };
    CHECK(ask({"id=1", "id=2"}).why() == absence::ambiguous);
    CHECK(ask({"id=1; id=2", "id=1; id=3", "x=4"}).bytes() == "1");
    CHECK(ask({"id=1; id=2"}).bytes() == "1");
    CHECK(ask({"id=", "id=1"}).why() == absence::ambiguous);
}

TEST_CASE("the 1000th pair is read and the next one is too long to reach")
{
    const auto ask = [](const std::vector<std::string>& values) {
        const auto lines = lines_of(values);
        return cookie("id")(weir::request(lines, {}));
    };
    CHECK(ask({pairs(999) + "id=1"}).bytes() == "1");
    CHECK(ask({pairs(1000) + "id=1"}).why() == absence::too_long);
    CHECK(ask({pairs(1000)}).why() == absence::missing);
    CHECK(ask({pairs(500), pairs(499) + "id=1"}).bytes() == "1");
    CHECK(ask({pairs(500), pairs(500), "id=1"}).why() == absence::too_long);
}

TEST_CASE("the value of a cookie may have 8192 bytes and not one more")
{
    const auto ask = [](std::size_t size) {
        const auto              line    = "id=" + std::string(size, 'v');
        const weir::header_line lines[] = {{"Cookie", line}};
        const auto              found   = cookie("id")(weir::request(lines, {}));
        return found.why() == absence::too_long ? 0 : found.bytes().size();
    };
    CHECK(ask(8192) == 8192);
    CHECK(ask(8193) == 0);
}

TEST_CASE("lines of many megabytes are read once at most")
{
    // A reader that goes back costs a million times as much here, and does not end.
    const std::string       blanks(8'000'000, ' '), equals(8'000'000, '=');
    const auto              line    = blanks + "x" + blanks + equals + ";id=1";
    const weir::header_line lines[] = {{"Cookie", blanks}, {"Cookie", equals}, {"Cookie", line}};
    CHECK(cookie("id")(weir::request(lines, {})).bytes() == "1");
}

TEST_CASE("a name that no browser sends is refused when the cookie is made")
{
    for (const auto* bad : {"", "a=b", "a;b", "a\n", " a", "a\t", "\x7f"})
        CHECK_THROWS_AS(cookie(bad), std::invalid_argument);
    CHECK_NOTHROW(cookie("__Host-id"));
    CHECK(cookie("user[id]").name() == "user[id]");
}
