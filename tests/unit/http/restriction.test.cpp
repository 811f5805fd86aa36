// SPDX-License-Identifier: BSL-1.0

#include "weir/http/restriction.hpp"

#include "catch.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace weir::http;
using Catch::Matchers::Contains;

namespace {

constexpr weir::instant at{};

struct asked {
    std::string_view               method = "GET";
    std::string_view               target = "/";
    std::vector<weir::header_line> lines  = {};
    std::string_view               client = "9.9.9.9";
    std::string_view               ja4    = {};
};

template <class Filter>
std::optional<answer> answer_of(const Filter& filter, const asked& by)
{
    const weir::request request(by.lines, {.method = by.method, .target = by.target});
    const auto          from   = weir::address::parse(by.client);
    const auto          client = from ? weir::client(*from) : weir::client();
    return filter.admit({.from = request, .client = client, .location = "site", .ja4 = by.ja4}, at);
}

/// The status, or 0 for a request that goes on.
template <class Filter>
int status(const Filter& filter, const asked& by)
{
    const auto given = answer_of(filter, by);
    return given ? given->status : 0;
}

int agent_status(const ua_restriction& filter, std::vector<std::string_view> agents)
{
    asked by;
    for (const auto agent : agents) by.lines.push_back({"user-agent", agent});
    return status(filter, by);
}

int referer_status(const referer_restriction& filter, std::string_view referer)
{
    return status(filter, {.lines = {{"Referer", referer}}});
}

template <class Make>
std::string fault_of(const Make& make)
{
    try {
        make();
    } catch (const std::invalid_argument& wrong) {
        return wrong.what();
    }
    return "";
}

}  // namespace

TEST_CASE("P66: an address rule without a list stops everybody, since allow is the default",
          "[restriction]")
{
    const auto given = answer_of(ip_restriction({}), {});
    REQUIRE(given);
    CHECK(given->status == 403);
    CHECK(given->body == "Request is forbidden");
    REQUIRE(given->fields.size() == 2);
    CHECK(given->fields[0].value == "text/plain; charset=utf-8");
    CHECK(given->fields[1].value == "no-store");
    CHECK(status(ip_restriction({.type = list_type::deny}), {}) == 0);
}

TEST_CASE("T17: an address is listed by its bits", "[restriction]")
{
    const std::vector<std::string> list{"192.168.1.0/24", "10.0.0.1", "2001:db8::/32",
                                        "2001:db8:a::1", "::ffff:172.16.0.0/108"};
    const ip_restriction           allow({.ip_list = list, .message = "Internal access only"});
    const ip_restriction           deny({.type = list_type::deny, .ip_list = list});
    for (const auto* in : {"192.168.1.100", "10.0.0.1", "2001:db8:dead:beef::1", "2001:db8:a::1",
                           "::ffff:10.0.0.1", "172.16.3.4"}) {
        INFO(in);
        CHECK(status(allow, {.client = in}) == 0);
        CHECK(status(deny, {.client = in}) == 403);
    }
    for (const auto* out : {"192.168.2.1", "2001:db9::1", "10.0.0.2", "::1", "0.0.0.1"}) {
        INFO(out);
        CHECK(status(allow, {.client = out}) == 403);
        CHECK(status(deny, {.client = out}) == 0);
    }
    CHECK(answer_of(allow, {.client = "::1"})->body == "Internal access only");
    CHECK_THAT(fault_of([] {
                   ip_restriction({.ip_list = {"::1", "999.999.999.999"}});
               }),
               Contains("ip_list[1] is \"999.999.999.999\""));
}

TEST_CASE("P66: a request whose client has no address is 400 under either type", "[restriction]")
{
    CHECK(status(ip_restriction({.ip_list = {"0.0.0.0/0"}}), {.client = ""}) == 400);
    CHECK(status(ip_restriction({.type = list_type::deny}), {.client = ""}) == 400);
}

TEST_CASE("P67: a User-Agent is looked for anywhere in the text, by case", "[restriction]")
{
    const std::vector<std::string> list{R"(go-http-client/1\.1)", R"(^python-requests/)",
                                        R"((Twitterspider)/(\d+)\.(\d+))"};
    const ua_restriction           deny({.type = list_type::deny, .ua_list = list});
    CHECK(agent_status(deny, {"x go-http-client/1.1 y"}) == 403);
    CHECK(agent_status(deny, {"Go-http-client/1.1"}) == 0);
    CHECK(agent_status(deny, {"python-requests/2"}) == 403);
    CHECK(agent_status(deny, {"my python-requests/2"}) == 0);
    CHECK(agent_status(deny, {"a Twitterspider/1.0"}) == 403);
    CHECK(agent_status(ua_restriction({.ua_list = {"^ok$"}}), {"ok"}) == 0);
    CHECK(agent_status(ua_restriction({.ua_list = {"^ok$"}}), {"okay"}) == 403);
    CHECK(agent_status(ua_restriction({.ua_list = {"(?i)OK"}}), {"ok"}) == 0);
}

TEST_CASE("P67: an absent User-Agent is stopped by allow and passes deny", "[restriction]")
{
    CHECK(agent_status(ua_restriction({.ua_list = {".*"}}), {}) == 403);
    CHECK(agent_status(ua_restriction({.type = list_type::deny, .ua_list = {".*"}}), {}) == 0);
    CHECK(agent_status(ua_restriction({}), {"any"}) == 403);
}

TEST_CASE("a second User-Agent line hides the first from neither type", "[restriction]")
{
    const ua_restriction allow({.ua_list = {"good"}});
    CHECK(agent_status(allow, {"good", "good"}) == 0);
    CHECK(agent_status(allow, {"good", "bad"}) == 403);
    CHECK(agent_status(allow, {"bad", "good"}) == 403);
    const ua_restriction deny({.type = list_type::deny, .ua_list = {"bad"}});
    CHECK(agent_status(deny, {"good", "bad"}) == 403);
    CHECK(agent_status(deny, {"bad", "good"}) == 403);
    CHECK(agent_status(deny, {"good", "good"}) == 0);
}

TEST_CASE("bytes that are no UTF-8 hide a User-Agent from no pattern", "[restriction]")
{
    const ua_restriction deny({.type = list_type::deny, .ua_list = {"^evil.*bot"}});
    CHECK(agent_status(deny, {"evil \xff\xfe bot"}) == 403);
    CHECK(agent_status(deny, {std::string_view("evil\0bot", 8)}) == 403);
}

TEST_CASE("P67: a pattern that is none is an error that names it", "[restriction]")
{
    CHECK_THAT(fault_of([] {
                   ua_restriction({.ua_list = {"ok", "(x"}});
               }),
               Contains("ua_restriction: ua_list[1] is \"(x\"") && Contains("missing )"));
    CHECK_THAT(fault_of([] { ua_restriction({.ua_list = {"(a)\\1"}}); }),
               Contains("invalid escape sequence"));  // no backreference: matching stays linear
    CHECK(pattern_fault("a{1,1000}").empty());
    CHECK_FALSE(pattern_fault("a{1,1001}").empty());
}

TEST_CASE("what takes backtracking engines years is judged like any other text", "[restriction]")
{
    const ua_restriction deny({.type = list_type::deny, .ua_list = {"^(a+)+$", "(a|aa)+b$"}});
    CHECK(agent_status(deny, {std::string(100'000, 'a') + "!"}) == 0);
    CHECK(agent_status(deny, {std::string(100'000, 'a')}) == 403);
}

TEST_CASE("P67: the host of the Referer is what is listed, and *. is what is below it",
          "[restriction]")
{
    const referer_restriction allow({.referer_list = {"Example.com", "*.example.org", "[::1]"}});
    for (const auto* in :
         {"https://example.com/a?b#c", "http://EXAMPLE.com:8080", "https://example.com./",
          "https://user:word@example.com/", "https://a.example.org/", "https://a.b.Example.org",
          "http://[0:0::1]:80/", "http://example.com?x", "http://example.com:"}) {
        INFO(in);
        CHECK(referer_status(allow, in) == 0);
    }
    for (const auto* out :
         {"https://example.org/", "https://notexample.com/", "https://example.com.evil.test/",
          "https://example.com@evil.test/", "https://evil.test/https://example.com/",
          "https://evil.test\\@example.com/", "https://evil.test#@example.com/", "example.com",
          "/example.com", "https:///example.com", "null", "", "about:blank",
          "https://example.com:80x/", "https://exam%70le.com/", "1https://example.com/",
          "https://.example.org/", "https://[::1/", "https:// example.com/"}) {
        INFO(out);
        CHECK(referer_status(allow, out) == 403);
    }
    CHECK(status(allow, {}) == 403);
}

TEST_CASE("P67: a Referer that is absent or no URL passes deny", "[restriction]")
{
    const referer_restriction deny(
        {.type = list_type::deny, .referer_list = {"spam.example", "*.scraper.example"}});
    CHECK(referer_status(deny, "http://spam.example/x") == 403);
    CHECK(referer_status(deny, "http://a.scraper.example/") == 403);
    CHECK(referer_status(deny, "http://scraper.example/") == 0);
    CHECK(referer_status(deny, "spam.example") == 0);
    CHECK(status(deny, {}) == 0);
    CHECK(referer_status(referer_restriction({.referer_list = {"*"}}), "http://any.test") == 0);
    CHECK(referer_status(referer_restriction({.referer_list = {"*"}}), "any") == 403);
}

TEST_CASE("a Referer list takes hosts, not URLs", "[restriction]")
{
    for (const auto* bad : {"https://example.com", "example.com/", "*example.com", "a.*.b", "*.",
                            "", "example.com:80", "ex ample.com", "[::g]"}) {
        INFO(bad);
        CHECK_FALSE(is_referer_entry(bad));
        CHECK_THAT(fault_of([&] { referer_restriction({.referer_list = {bad}}); }),
                   Contains("referer_list[0]"));
    }
}

TEST_CASE("P67: a fingerprint is looked for in its whole text", "[restriction]")
{
    constexpr std::string_view chromium = "t13d1516h2_8daaf6152771_02713d6af862",
                               old      = "t12i030200_aaaaaaaaaaaa_000000000000";
    for (const auto* in :
         {"^t13", "8daaf6152771", "_02713d6af862$", "^t13d1516h2_8daaf6152771_02713d6af862$"}) {
        INFO(in);
        const std::vector<std::string> list{"^nothing$", in};
        CHECK(status(ja4_restriction({.ja4_list = list}), {.ja4 = chromium}) == 0);
        CHECK(status(ja4_restriction({.ja4_list = list}), {.ja4 = old}) == 403);
        const ja4_restriction deny({.type = list_type::deny, .ja4_list = list});
        CHECK(status(deny, {.ja4 = chromium}) == 403);
        CHECK(status(deny, {.ja4 = old}) == 0);
    }
    const auto given =
        answer_of(ja4_restriction({.type = list_type::deny, .ja4_list = {"^t12"}, .message = "No"}),
                  {.ja4 = old});
    REQUIRE(given);
    CHECK(given->body == "No");
}

TEST_CASE("P67: without a fingerprint allow stops and deny does not, whatever is listed",
          "[restriction]")
{
    for (const auto* list : {".*", "^$", "x"}) {
        INFO(list);
        CHECK(status(ja4_restriction({.ja4_list = {list}}), {}) == 403);
        CHECK(status(ja4_restriction({.type = list_type::deny, .ja4_list = {list}}), {}) == 0);
    }
}

TEST_CASE("a list of fingerprints has an entry, and each is a pattern", "[restriction]")
{
    CHECK_THAT(fault_of([] { ja4_restriction({}); }), Contains("ja4_list is empty"));
    CHECK_THAT(fault_of([] {
                   ja4_restriction({.ja4_list = {"ok", "[t13"}});
               }),
               Contains("ja4_restriction: ja4_list[1] is \"[t13\""));
}

TEST_CASE("a path is blocked however it is spelled", "[restriction]")
{
    const uri_block block({.paths   = {R"(\.env$)", "^/admin", R"((?i)^/wp-(login|admin))"},
                           .queries = {R"(\.\./)", R"((?i)union\s+select)"}});
    for (const auto* in : {"/.env",          "/%2eenv",           "/public/../.env",
                           "//.env",         "/a/../../.env",     "/.%65nv",
                           "/.env;x=1",      "/public/../admin",  "/x/..;/admin",
                           "/\\admin",       "/a%2f..%2fadmin",   "/./admin/x",
                           "/WP-login.php",  "http://host/.env",  "/.env?x",
                           "/.env#x",        "/x?f=../etc",       "/x?f=..%2Fetc",
                           "/x?f=%2e%2e%2f", "/x?q=UNION+select", "/x?q=union%20%20select"}) {
        INFO(in);
        CHECK(status(block, {.target = in}) == 403);
    }
    for (const auto* out : {"/", "/env", "/.environment", "/x/admin", "/x?f=.env", "/a.env.txt",
                            "/x?f=%252e%252e%252f", "http://admin/", "*", ""}) {
        INFO(out);
        CHECK(status(block, {.target = out}) == 0);
    }
    const auto given = answer_of(block, {.target = "/.env"});
    REQUIRE(given);
    CHECK(given->body == "Request is blocked");
}

TEST_CASE("a method that is not among those let through is blocked", "[restriction]")
{
    const uri_block block({.methods = {"GET", "post"}, .status = 405, .message = "No"});
    CHECK(status(block, {.method = "GET"}) == 0);
    CHECK(status(block, {.method = "POST"}) == 0);
    CHECK(status(block, {.method = "get"}) == 405);  // another method than GET: RFC 9110, 9.1
    CHECK(status(block, {.method = "TRACE"}) == 405);
    CHECK(status(block, {.method = ""}) == 405);
}

TEST_CASE(
    "a uri_block without a rule, with a status that is none and with a broken list is an error",
    "[restriction]")
{
    CHECK_THAT(fault_of([] { uri_block({}); }), Contains("one of paths, queries and methods"));
    CHECK_THAT(fault_of([] { uri_block({.paths = {"["}}); }), Contains("paths[0]"));
    CHECK_THAT(fault_of([] { uri_block({.queries = {"a", "*"}}); }), Contains("queries[1]"));
    CHECK_THAT(fault_of([] { uri_block({.methods = {"G T"}}); }), Contains("methods[0]"));
    CHECK_THAT(fault_of([] { uri_block({.paths = {"x"}, .status = 399}); }), Contains("399"));
}

TEST_CASE("a plain path is decoded once, has no double slash, no dots and no parameters",
          "[restriction]")
{
    struct row {
        std::string_view path, plain;
    };
    const auto one = GENERATE(
        row{"", "/"}, row{"/", "/"}, row{"/a/b", "/a/b"}, row{"/a/b/", "/a/b/"}, row{"a", "/a"},
        row{"//a///b", "/a/b"}, row{"/a/./b/../c", "/a/c"}, row{"/a/..", "/"},
        row{"/a/b/..", "/a/"}, row{"/a/.", "/a/"}, row{"/..", "/"}, row{"/a;x=1/b;y", "/a/b"},
        row{"/a/..;/b", "/b"}, row{"/a\\b", "/a/b"}, row{"/%61%2fb", "/a/b"}, row{"/%2561", "/%61"},
        row{"/a%", "/a%"}, row{"/a+b", "/a+b"}, row{"/;x", "/"}, row{"/...", "/..."});
    INFO(one.path);
    CHECK(plain_path(one.path) == one.plain);
}

TEST_CASE("P61: under dry_run nothing is refused and the log has what it would have gone by",
          "[restriction]")
{
    std::vector<std::string> lines;
    const auto               sink = [&](std::string_view line) { lines.emplace_back(line); };
    shadow_log               log("rule", "ua_restriction", sink);

    const asked by{.method = "PUT",
                   .target = "/x?y=bad",
                   .lines  = {{"User-Agent", "bot/1"}, {"Referer", "http://spam.example/p"}}};
    CHECK(status(ip_restriction({.dry_run = true}, &log), by) == 0);
    CHECK(status(ip_restriction({.dry_run = true}, &log), {.client = ""}) == 0);
    CHECK(status(ua_restriction({.dry_run = true}, &log), by) == 0);
    CHECK(status(referer_restriction({.message = "Away", .dry_run = true}, &log), by) == 0);
    CHECK(status(uri_block({.queries = {"bad"}, .status = 404, .dry_run = true}, &log), by) == 0);
    CHECK(status(uri_block({.methods = {"GET"}, .dry_run = true}, &log), by) == 0);

    REQUIRE(lines.size() == 6);
    CHECK_THAT(lines[0], Contains("status=403 reason=Request is forbidden matched=\"9.9.9.9\""));
    CHECK_THAT(lines[1], Contains("status=400 reason=The address of the client is not known"));
    CHECK_THAT(lines[2], Contains("matched=\"bot/1\""));
    CHECK_THAT(lines[3], Contains("reason=Away matched=\"http://spam.example/p\""));
    CHECK_THAT(lines[4], Contains("status=404 reason=Request is blocked matched=\"y=bad\""));
    CHECK_THAT(lines[5], Contains("matched=\"PUT\""));

    // A fingerprint, or that there is none.
    const ja4_restriction stacks({.ja4_list = {"^t13"}, .dry_run = true}, &log);
    CHECK(status(stacks, {.ja4 = "t12i030200_aaaaaaaaaaaa_000000000000"}) == 0);
    CHECK(status(stacks, {}) == 0);
    REQUIRE(lines.size() == 8);
    CHECK_THAT(lines[6], Contains("status=403 reason=Request is forbidden "
                                  "matched=\"t12i030200_aaaaaaaaaaaa_000000000000\""));
    CHECK_THAT(lines[7], Contains("matched=\"\""));

    // Without a log it is silent, and who would be let in leaves no line.
    CHECK(status(ua_restriction({.dry_run = true}), by) == 0);
    CHECK(status(ua_restriction({.ua_list = {"bot"}, .dry_run = true}, &log), by) == 0);
    CHECK(status(stacks, {.ja4 = "t13d1516h2_8daaf6152771_02713d6af862"}) == 0);
    CHECK(lines.size() == 8);
}
