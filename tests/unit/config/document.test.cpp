// SPDX-License-Identifier: BSL-1.0

#include "weir/config/document.hpp"

#include "catch.hpp"
#include "weir/config/told_once.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using weir::config::document;
using weir::config::finding;
using weir::config::nearest;

namespace {

document read(std::string_view text) { return document::parse(text, "weir.toml"); }

std::string errors(const document& of) { return to_string(of.errors()); }
std::string warnings(const document& of) { return to_string(of.warnings()); }

}  // namespace

TEST_CASE("values that are of their type are read and nothing is said", "[document]")
{
    auto       doc   = read("[basic]\nname = \"edge\"\nmax = 5\non = true\nwait = \"1h30m\"\n"
                                    "mode = \"b\"\nlist = [\"x\", \"y\"]\nbig = 9223372036854775807\n"
                                    "from = [\"10.0.0.0/8\", \"private\"]\naddr = \"[::1]:80\"\n");
    const auto basic = doc.root().child("basic");
    CHECK(basic.path() == "basic");
    CHECK(basic.text("name", "") == "edge");
    CHECK(basic.integer("max", 1, 0, 10) == 5);
    CHECK(basic.integer("big", std::uint64_t{1}, std::uint64_t{0}, ~std::uint64_t{0}) ==
          9223372036854775807U);
    CHECK(basic.flag("on", false));
    CHECK(basic.duration("wait", 1s) == 5400s);
    CHECK(basic.one_of("mode", "a", {"a", "b"}) == "b");
    CHECK(basic.texts("list") == std::vector<std::string>{"x", "y"});
    CHECK(basic.ranges("from") == std::vector<std::string>{"10.0.0.0/8", "private"});
    CHECK(basic.listen("addr")->port == 80);
    CHECK(basic.text("absent", "otherwise") == "otherwise");
    doc.warn_of_strangers();
    CHECK(doc.ok());
    CHECK(warnings(doc).empty());
}

TEST_CASE("all wrong values are told at line and column in the order of the file, wrong types last",
          "[document]")
{
    const auto doc   = read("[basic]\nname = 5\nmax = \"5\"\non = 1.5\n  wait = 10\n"
                              "mode = \"c\"\nlist = [\"x\", 7]\nlow = -1\nlong = \"2h\"\n"
                              "from = [\"unix\", \"10.0.0.0/64\"]\naddr = \"localhost:80\"\n"
                              "when = 2026-01-01\nsub = [1]\n");
    const auto basic = doc.root().child("basic");
    CHECK_FALSE(basic.child("sub").written());
    CHECK_FALSE(basic.listen("addr"));
    CHECK(basic.ranges("from") == std::vector<std::string>{"unix"});
    CHECK(basic.duration("long", 1s, 1ms, 1h) == 1s);
    CHECK(basic.integer("low", 3, 0, 10) == 3);
    CHECK(basic.texts("list") == std::vector<std::string>{"x"});
    CHECK(basic.one_of("mode", "a", {"a", "b"}) == "a");
    CHECK(basic.duration("wait", 1s) == 1s);
    CHECK(basic.flag("on", true));
    CHECK(basic.integer("max", 2, 0, 10) == 2);
    CHECK_FALSE(basic.text("name"));
    CHECK_FALSE(basic.flag("when", false));
    CHECK(errors(doc) ==
          "weir.toml:6:8: basic: mode is \"c\"; allowed is one of a, b\n"
          "weir.toml:8:7: basic: low must be 0 to 10, got -1\n"
          "weir.toml:9:8: basic: long must be at most 1h\n"
          "weir.toml:10:17: basic: from has \"10.0.0.0/64\"; allowed are addresses, ranges such as "
          "10.0.0.0/8, private and unix\n"
          "weir.toml:11:8: basic: addr is \"localhost:80\"; allowed is ADDRESS:PORT or [IPV6]:PORT "
          "with a port of 0 to 65535\n"
          "weir.toml:2:8: basic: name must be a string, got integer 5\n"
          "weir.toml:3:7: basic: max must be an integer, got string \"5\"\n"
          "weir.toml:4:6: basic: on must be true or false, got float 1.5\n"
          "weir.toml:5:10: basic: wait must be a string, got integer 10\n"
          "weir.toml:7:14: basic: list[1] must be a string, got integer 7\n"
          "weir.toml:12:8: basic: when must be true or false, got date or time 2026-01-01\n"
          "weir.toml:13:7: basic: sub must be a table, got array\n");
}

TEST_CASE("a text that is no TOML is one error at its place, and reading goes on empty",
          "[document]")
{
    const auto doc = read("[basic]\nname = \n");
    REQUIRE(doc.errors().size() == 1);
    CHECK(doc.errors()[0].at.line == 2);
    CHECK_FALSE(doc.root().child("basic").written());
}

TEST_CASE("the same key twice is an error, not a choice", "[document]")
{
    CHECK_FALSE(read("a = 1\na = 2\n").ok());
    CHECK_FALSE(read("[a]\n[a]\n").ok());
}

TEST_CASE("the value of a secret is never told", "[document]")
{
    const auto doc = read("short = \"hush\"\nnumber = 1234567890123456\n");
    CHECK_FALSE(doc.root().secret("short", 16));
    CHECK_FALSE(doc.root().secret("number", 16));
    CHECK(doc.errors().size() == 2);
    CHECK(errors(doc).find("hush") == std::string::npos);
    CHECK(errors(doc).find("1234567890123456") == std::string::npos);
    CHECK(read("s = \"0123456789abcdef\"").root().secret("s", 16) == "0123456789abcdef");
}

TEST_CASE("tables come in the order of the file, under the names that they have", "[document]")
{
    const auto doc = read("[plugins.zeta]\n[plugins.alpha]\n[plugins.\"a.b c\"]\n[[hop]]\nn = 1\n"
                          "[[hop]]\nn = 2\n");
    const auto all = doc.root().child("plugins").children();
    REQUIRE(all.size() == 3);
    CHECK(all[0].name() == "zeta");
    CHECK(all[1].name() == "alpha");
    CHECK(all[2].name() == "a.b c");
    CHECK(all[2].path() == "plugins.\"a.b c\"");
    const auto hops = doc.root().list("hop");
    REQUIRE(hops.size() == 2);
    CHECK(hops[1].integer("n") == 2);
    CHECK(doc.ok());
}

TEST_CASE("a key nobody asked for is warned about and the nearest known key is named", "[document]")
{
    auto       doc   = read("[basic]\nmaxx = 1\ncolour = 2\n[sevrers.web]\naddr = \"\"\n");
    const auto basic = doc.root().child("basic");
    CHECK(basic.integer("max", 7, 0, 10) == 7);
    CHECK(doc.root().child("servers").children().empty());
    doc.warn_of_strangers();
    CHECK(doc.ok());
    CHECK(warnings(doc) ==
          "weir.toml:2:1: basic: there is no key \"maxx\" here, so it has no effect; did you mean "
          "max?\n"
          "weir.toml:3:1: basic: there is no key \"colour\" here, so it has no effect\n"
          "weir.toml:4:2: there is no key \"sevrers\" here, so it has no effect; did you mean "
          "servers?\n");
}

TEST_CASE("nothing is said about the keys of a table that is skipped", "[document]")
{
    auto doc = read("[plugins.x]\ncategory = \"new\"\nodd = 1\n");
    for (const auto& plugin : doc.root().child("plugins").children()) plugin.skip();
    doc.warn_of_strangers();
    CHECK(warnings(doc).empty());
}

TEST_CASE("the nearest word is at most two letters and a third of the word away", "[document]")
{
    const std::string_view known[] = {"interval", "max", "missing_key", "dry_run"};
    CHECK(nearest("intervall", known) == "interval");
    CHECK(nearest("Max", known) == "max");
    CHECK(nearest("mxa", known) == "max");
    CHECK(nearest("missingkey", known) == "missing_key");
    CHECK(nearest("dryrun", known) == "dry_run");
    CHECK(nearest("min", known).empty());
    CHECK(nearest("", known).empty());
    CHECK(nearest("weight", known).empty());
}

TEST_CASE("tables stay good when their document is moved", "[document]")
{
    auto       first  = read("a = 1\nb = \"x\"\n");
    const auto root   = first.root();
    const auto second = std::move(first);
    CHECK(root.integer("a") == 1);
    CHECK_FALSE(root.integer("b"));
    CHECK(second.errors().size() == 1);
}

TEST_CASE("what nests without bound is an error and not the end of the stack", "[document]")
{
    std::string dots = "a";
    for (int i = 0; i < 400'000; ++i) dots += ".a";
    CHECK_FALSE(read(dots + " = 1\n").ok());
    CHECK_FALSE(read("[" + dots + "]\n").ok());
    CHECK_FALSE(read("[\"\".\"#\"." + dots + "]\n").ok());
    CHECK_FALSE(read("x = \"\"\"\n\"\"\"\n" + dots + " = 1\n").ok());
    CHECK_FALSE(read("x = " + std::string(400'000, '[')).ok());
    CHECK(read("x = \"" + dots + "\"\n").ok());
    CHECK(read("x = '''\n" + dots + "'''\n").ok());
    CHECK(read("x = 1 # " + dots + "\n").ok());
}

TEST_CASE("characters that are not ASCII stand in quotes and comments, and nowhere else",
          "[document]")
{
    const auto text = [](std::string_view toml) { return read(toml).root().text("s"); };
    CHECK(text("s = \"é\" # ü\n") == "é");
    CHECK(text("# §\ns = 'é'\n") == "é");
    CHECK(read("\"é\" = 1\n").root().integer("é") == 1);
    CHECK(text("\xef\xbb\xbfs = \"a\"\n") == "a");
    CHECK(text("s = \"\"\"a\"\"\"\"\" # é\n") == "a\"\"");
    CHECK(text("s = '''\né\\'''\n") == "é\\");

    // After a line-ending backslash, where the parser would look for blanks.
    CHECK(text("s = \"\"\"\\\n§\"\"\"\n") == "§");
    CHECK(text("s = \"\"\"a \\  \r\n\r\n  日本 \\\n b\"\"\"\n") == "a 日本 b");
    CHECK(text("s = \"\"\"\\\n\xf0\x9f\x98\x80\"\"\"\n") == "\xf0\x9f\x98\x80");

    CHECK(errors(read("a = 1\n é = 1\n")) ==
          "weir.toml:2:2: a character that is not ASCII stands outside of quotes\n");
    CHECK(errors(read("é")) ==
          "weir.toml:1:1: a character that is not ASCII stands outside of quotes\n");
    CHECK(errors(read("s = \"é\" ü\n")) ==
          "weir.toml:1:9: a character that is not ASCII stands outside of quotes\n");
    CHECK(errors(read("s = \"\xff\"\n")) ==
          "weir.toml:1:6: there are bytes here that are not UTF-8\n");
    CHECK(errors(read("s = \"\"\"\\§\"\"\"\n")) ==
          "weir.toml:1:9: a backslash stands before a character that is not ASCII\n");
    CHECK_FALSE(read("s = \"\"\"\\ §\"\"\"\n").ok());
    CHECK_FALSE(read("s = \"\\§\"\n").ok());
    CHECK_FALSE(read("a = 7\"é\"\n").ok());
    CHECK_FALSE(read("a = 1.'é'\n").ok());
    CHECK(text("s = '''''\"é\\n'''''\n") == "''\"é\\n''");
    CHECK(text("s = '\"\\\"'\n") == "\"\\\"");
}

TEST_CASE("a place is told as it is written, behind characters of several bytes and quotes too",
          "[document]")
{
    const auto doc = read("a = [\"é\", 'ü\\\"', 3]\n\"ö\" = [7]\n");
    CHECK(doc.root().texts("a").size() == 2);
    CHECK(doc.root().texts("ö").empty());
    CHECK(errors(doc) == "weir.toml:1:18: a[2] must be a string, got integer 3\n"
                         "weir.toml:2:8: ö[0] must be a string, got integer 7\n");
    CHECK(errors(read("a = '\\\\é' x\n")).starts_with("weir.toml:1:11: "));
}

TEST_CASE("headers and keys that are none are errors and not the end of the program", "[document]")
{
    for (const auto* text :
         {"[!]\n", "[[\n~",  "[[!]]\n", "[\n",   "[]\n",  "[ ]\n",   "[.]\n", "[a.]\n",
          "=\n",   "a.=1\n", ".a=1\n",  "a=\n",  "a={\n", "a={.}\n", "a=[\n", "a={=}\n",
          "[a\n",  "[[a]\n", "a=,\n",   "a=]\n", "!=1\n", "{}\n"}) {
        INFO(text);
        CHECK(read(text).errors().size() == 1);
    }
}

TEST_CASE("a file of more than a mebibyte and one that is not there are errors", "[document]")
{
    CHECK(errors(read(std::string((1 << 20) + 1, '\n'))) ==
          "weir.toml: the file has more than 1048576 bytes\n");
    CHECK(errors(document::read("/nonexistent/weir.toml")) ==
          "/nonexistent/weir.toml: the file cannot be read\n");
    const auto folder = std::filesystem::temp_directory_path();
    CHECK(errors(document::read(folder.string())).find("cannot be read") != std::string::npos);
}

TEST_CASE("a file is read as its text is", "[document]")
{
    const auto path = std::filesystem::temp_directory_path() / "weir-document-test.toml";
    std::ofstream(path) << "a = 3\n";
    const auto doc = document::read(path.string());
    std::filesystem::remove(path);
    CHECK(doc.root().integer("a") == 3);
    CHECK(doc.ok());
}

TEST_CASE("a finding is one line whatever the operator wrote", "[document]")
{
    const auto doc = read("mode = \"a\\nb\\u001b[31m\\u0000\"\n");
    CHECK(doc.root().one_of("mode", "x", {"x"}) == "x");
    CHECK(errors(doc) == "weir.toml:1:8: mode is \"a?b?[31m?\"; allowed is one of x\n");
    CHECK(weir::config::shown(std::string(61, 'x')) == "\"" + std::string(60, 'x') + "…\"");
    CHECK(weir::config::shown("\xff") == "\"?\"");
}

TEST_CASE("P03: a finding is told when it is new and not again by a reload that only moves it",
          "[document]")
{
    weir::config::told_once told;
    finding                 one{.file = "f", .at = {3, 1}, .table = "t", .text = "a"};
    CHECK(told.fresh(std::vector{one, one}).size() == 1);
    one.at = {9, 1};
    const finding other{.file = "f", .at = {1, 1}, .table = "t", .text = "b"};
    CHECK(told.fresh(std::vector{one, other}) == std::vector{other});
    CHECK(told.fresh(std::vector{one, other}).empty());

    // Mended, and back.
    CHECK(told.fresh(std::vector{other}).empty());
    CHECK(told.fresh(std::vector{one, other}) == std::vector{one});
}
