// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/query.hpp"

#include <stdexcept>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "reference/table.hpp"

using weir::absence;
using weir::query;

namespace {

weir::field ask(std::string_view target, const query& source = query("k"))
{
    return source(weir::request(std::span<const weir::header_line>(), {.target = target}));
}

std::string pairs(std::size_t count)
{
    std::string out = "/?";
    for (std::size_t i = 0; i < count; ++i) out += "a=b&";
    return out;
}

}  // namespace

TEST_CASE("a parameter has the value that the rows say or the reason why it has none")
{
    for (const auto& row : reference::table("query.tsv", 6)) {
        INFO("row " << row[0]);
        const query source(row[1], {.plus_is_space = row[2] == "space"});
        const auto  found = ask(row[5], source);
        CHECK((found ? "-" : name(*found.why())) == row[3]);
        CHECK(found.bytes() == (found ? row[4] : ""));
    }
}

TEST_CASE("a value that needs no decoding is borrowed and one that does is not")
{
    const std::string_view target = "/?k=abc";
    CHECK(ask(target).bytes().data() == target.data() + 4);
    const auto decoded = ask("/?k=%61bc");
    CHECK(decoded.bytes() == "abc");
    CHECK(static_cast<const void*>(decoded.bytes().data()) >= &decoded);
    CHECK(static_cast<const void*>(decoded.bytes().data()) < &decoded + 1);
}

TEST_CASE("the length that counts is that of the decoded value however it is written")
{
    std::string plain(1024, 'x'), encoded;
    for (int i = 0; i < 1024; ++i) encoded += "%78";
    CHECK(ask("/?k=" + plain).why() == std::nullopt);
    CHECK(ask("/?k=" + encoded).bytes() == plain);
    CHECK(ask("/?k=x" + plain).why() == absence::too_long);
    CHECK(ask("/?k=x" + encoded).why() == absence::too_long);
    CHECK(ask("/?k=" + encoded + "%").why() == absence::too_long);
}

TEST_CASE("C20: of 10000 pairs the first 1000 are read")
{
    CHECK(ask(pairs(999) + "k=1").bytes() == "1");
    CHECK(ask(pairs(1000) + "k=1").why() == absence::too_long);
    CHECK(ask(pairs(10'000) + "k=1").why() == absence::too_long);
    CHECK(ask("/?k=1&" + pairs(10'000)).bytes() == "1");
    CHECK(ask(pairs(1000)).why() == absence::missing);
}

TEST_CASE("a query of many megabytes is read once at most")
{
    // A reader that goes back costs a million times as much here, and does not end.
    const std::string many(8'000'000, '%');
    CHECK(ask("/?k=" + many).why() == absence::too_long);
    CHECK(ask("/?" + many + "=1&k=2").bytes() == "2");
    CHECK(ask("/?" + many + many).why() == absence::missing);
    CHECK(ask(many + '#' + many + "?k=1").why() == absence::missing);
}

TEST_CASE("a parameter without a name is refused when it is made")
{
    CHECK_THROWS_AS(query(""), std::invalid_argument);
    CHECK(query("a&b").name() == "a&b");
    CHECK(ask("/?a%26b=1", query("a&b")).bytes() == "1");
}
