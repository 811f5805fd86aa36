// SPDX-License-Identifier: BSL-1.0

#include "weir/config/limits.hpp"

#include "catch.hpp"
#include "reference/table.hpp"
#include "weir/http/limit.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using namespace weir::config;
namespace http = weir::http;

namespace {

document read(const std::string& keys) { return document::parse("[plugins.x]\n" + keys, "f"); }

table plugin(const document& of) { return of.root().child("plugins").child("x"); }

/// A line for each thing that is told, without its place; warnings with a mark.
std::string told(document& of)
{
    of.warn_of_strangers();
    std::string out;
    for (const auto& one : of.errors()) out.append(out.empty() ? "" : "; ").append(one.text);
    for (const auto& one : of.warnings()) out.append(out.empty() ? "!" : "; !").append(one.text);
    return out.empty() ? "-" : out;
}

/// Options of a table that is right.
http::limit_options limit(const std::string& keys)
{
    const auto doc   = read(keys);
    auto       found = read_limit(plugin(doc));
    INFO(to_string(doc.errors()));
    REQUIRE(found);
    return *found;
}

template <class Read>
std::string complaint(const Read& reader, const std::string& keys)
{
    auto       doc   = read(keys);
    const auto found = reader(plugin(doc));
    CHECK(found.has_value() == doc.ok());
    return told(doc);
}

}  // namespace

TEST_CASE("P01-P13: a limit is refused, warned about or accepted as its row says", "[limits]")
{
    std::size_t rows = 0;
    for (const auto& row : reference::table("limit_config.tsv", 3)) {
        auto keys = row[1];
        std::ranges::replace(keys, ';', '\n');
        auto       doc   = read("category=\"limit\"\n" + keys);
        const auto found = read_limit(plugin(doc));
        INFO(row[0] << ": " << row[1]);
        CHECK(told(doc) == row[2]);
        CHECK(found.has_value() == (row[2] == "-" || row[2].starts_with('!')));
        ++rows;
    }
    CHECK(rows > 80);
}

TEST_CASE("every limit that loads can be made", "[limits]")
{
    http::counters counts({.max_keys = 64});
    for (const auto& row : reference::table("limit_config.tsv", 3)) {
        auto keys = row[1];
        std::ranges::replace(keys, ';', '\n');
        const auto doc   = read(keys);
        const auto found = read_limit(plugin(doc));
        if (!found || found->store == "shared" || found->max == 9223372036854775807U) continue;
        INFO(row[0] << ": " << row[1]);
        CHECK_NOTHROW(http::limit(*found, counts));
    }
}

TEST_CASE("P01-P11: what is not written has the seed's default", "[limits]")
{
    const auto of = limit("max=5\n");
    CHECK(of.name == "x");
    CHECK(of.type == http::limit_type::rate);
    CHECK(of.tag == http::limit_tag::ip);
    CHECK(of.max == 5U);
    CHECK(of.interval == 10s);
    CHECK(of.step == http::limit_step::request);
    CHECK_FALSE(of.headers);
    CHECK(of.status == 429);
    CHECK_FALSE(of.message);
    CHECK(of.missing_key == weir::missing_key::pass);
    CHECK_FALSE(of.dry_run);
    CHECK(of.policy == http::limit_policy::sliding);
    CHECK(of.retry_after == http::told_wait::interval);
    CHECK(of.store == "memory");
    CHECK(of.on_outage == weir::fail_closed);
    CHECK(of.ipv6_prefix == 64);
    CHECK(of.body == weir::refusal_body::text);
    CHECK(of.quota == http::quota_form::x_ratelimit);
}

TEST_CASE("every key of a limit arrives in its option", "[limits]")
{
    const auto of = limit(R"(
category = "limit"
type = "rate"
tag = "header"
key = "X-API-Key"
max = 20
interval = "1h30m"
step = "proxy_upstream"
headers = true
status = 503
message = "slow down"
missing_key = "shared_bucket"
dry_run = true
policy = "gcra"
burst = 5
retry_after = "exact"
store = "shared"
on_outage = "local"
processes = 4
ipv6_prefix = 56
allow = ["10.0.0.0/8", "::1"]
body = "problem"
quota = "both"
[plugins.x.overrides]
gold = 1000
"a.b" = 0
)");
    CHECK(of.tag == http::limit_tag::header);
    CHECK(of.key == "X-API-Key");
    CHECK(of.interval == 5400s);
    CHECK(of.step == http::limit_step::proxy_upstream);
    CHECK(of.headers);
    CHECK(of.status == 503);
    CHECK(of.message == "slow down");
    CHECK(of.missing_key == weir::missing_key::shared_bucket);
    CHECK(of.dry_run);
    CHECK(of.policy == http::limit_policy::gcra);
    CHECK(of.burst == 5U);
    CHECK(of.retry_after == http::told_wait::exact);
    CHECK(of.store == "shared");
    CHECK(of.on_outage == weir::local(4));
    CHECK(of.ipv6_prefix == 56);
    CHECK(of.allow == std::vector<std::string>{"10.0.0.0/8", "::1"});
    CHECK(of.overrides == std::map<std::string, std::uint64_t>{{"a.b", 0}, {"gold", 1000}});
    CHECK(of.body == weir::refusal_body::problem);
    CHECK(of.quota == http::quota_form::both);

    const auto tiered = limit("max=1\n[[plugins.x.tiers]]\nprefix=48\nmax=9\n");
    REQUIRE(tiered.tiers.size() == 1);
    CHECK(tiered.tiers[0].prefix == 48);
    CHECK(tiered.tiers[0].max == 9);
}

TEST_CASE("the examples of the seed load without a word", "[limits]")
{
    auto doc = document::parse(R"([plugins.rateLimit]
category = "limit"
type = "rate"
tag = "ip"
max = 600
interval = "60s"
[plugins.userInflight]
category = "limit"
type = "inflight"
tag = "cookie"
key = "deviceId"
max = 10
[plugins.upstreamGuard]
category = "limit"
type = "inflight"
tag = "header"
key = "X-API-Key"
max = 20
step = "proxy_upstream"
[plugins.perClientKind]
category = "limit"
type = "rate"
tag = "ja4"
max = 300
interval = "60s"
)",
                               "f");
    for (const auto& one : doc.root().child("plugins").children()) {
        const auto found = read_limit(one);
        REQUIRE(found);
        CHECK(found->name == one.name());
    }
    CHECK(told(doc) == "-");
}

TEST_CASE("all that is wrong with a limit is told, each at its own place", "[limits]")
{
    auto doc = read("type = \"inflght\"\nmax = -1\n  step = \"response\"\nstatus = 700\n"
                    "missing_key = \"deny\"\nallow = [\"::1\",\n  \"x\"]\n");
    CHECK_FALSE(read_limit(plugin(doc)));
    CHECK(to_string(doc.errors()) ==
          "f:2:8: plugins.x: Invalid type(inflght), expect rate or inflight\n"
          "f:3:7: plugins.x: max must not be negative\n"
          "f:4:10: plugins.x: Invalid step(response), expect one of: request, proxy_upstream\n"
          "f:5:10: plugins.x: status must be between 400 and 599\n"
          "f:6:15: plugins.x: Invalid missing_key(deny), expect pass or reject or shared_bucket\n"
          "f:8:3: plugins.x: allow has \"x\"; allowed are addresses and ranges such as "
          "10.0.0.0/8\n");
}

TEST_CASE("P12: a limit's own error comes before the notes about types", "[limits]")
{
    auto doc = read("interval = 10\nmax = -1\n");
    CHECK_FALSE(read_limit(plugin(doc)));
    CHECK(to_string(doc.errors()) ==
          "f:3:7: plugins.x: max must not be negative\n"
          "f:2:12: plugins.x: interval must be a string, got integer 10\n");
}

TEST_CASE("P13: the options are the same whatever the weight is", "[limits]")
{
    for (const auto* weight : {"0", "50", "100", "\"x\"", "-1"}) {
        const auto of = limit(std::string("max=5\ninterval=\"1m\"\nweight=") + weight + "\n");
        CHECK(of.max == 5U);
        CHECK(of.interval == 1min);
    }
}

TEST_CASE("P14: a limit by fingerprint on a server without them is a warning at its tag",
          "[limits]")
{
    auto doc = read("max = 1\ntag = \"ja4\"\n");
    auto of  = *read_limit(plugin(doc));
    warn_without_ja4(plugin(doc), of, "web");
    of.tag = http::limit_tag::ip;
    warn_without_ja4(plugin(doc), of, "web");
    CHECK(doc.ok());
    CHECK(to_string(doc.warnings()) ==
          "f:3:7: plugins.x: tag = \"ja4\", but server \"web\" has no fingerprints: set ja4 = true "
          "there, unless this limit is for its other servers\n");
}

TEST_CASE("P14: a restriction by fingerprint says whom it stops on a server without them",
          "[limits]")
{
    auto doc = read("category = \"ja4_restriction\"\nja4_list = ['^t13d']\n");
    auto of  = *read_ja4_restriction(plugin(doc));
    warn_without_ja4(plugin(doc), of, "web");
    of.type = http::list_type::deny;
    warn_without_ja4(plugin(doc), of, "api");
    CHECK(doc.ok());
    CHECK(
        to_string(doc.warnings()) ==
        "f:2:12: plugins.x: server \"web\" has no fingerprints, so everybody is refused there: set "
        "ja4 = true, unless this is for its other servers\n"
        "f:2:12: plugins.x: server \"api\" has no fingerprints, so nobody is refused there: set "
        "ja4 = true, unless this is for its other servers\n");
}

TEST_CASE("a preset is where a limit starts from, and each key changes it", "[limits]")
{
    const auto of = limit("preset = \"forms\"\nmax = 7\nstatus = 503\n");
    CHECK(of.name == "x");
    CHECK(of.policy == http::limit_policy::fixed);
    CHECK(of.interval == 60s);
    CHECK(of.body == weir::refusal_body::envelope);
    CHECK(of.retry_after == http::told_wait::exact);
    CHECK(of.max == 7U);
    CHECK(of.status == 503);
    CHECK(limit("preset = \"forms\"\n").max == 60U);
    CHECK(limit("preset = \"strict\"\nmax = 1\n").policy == http::limit_policy::strict);
}

TEST_CASE("P66: restrictions read their lists, and their type in either case", "[limits]")
{
    const auto doc = read("category=\"ip_restriction\"\ntype=\"DENY\"\nip_list=[\"1.2.3.4\"]\n"
                          "message=\"no\"\ndry_run=true\n");
    const auto of  = read_ip_restriction(plugin(doc));
    REQUIRE(of);
    CHECK(of->type == http::list_type::deny);
    CHECK(of->ip_list == std::vector<std::string>{"1.2.3.4"});
    CHECK(of->message == "no");
    CHECK(of->dry_run);

    const auto none = read("category=\"ip_restriction\"\n");
    CHECK(read_ip_restriction(plugin(none))->type == http::list_type::allow);
}

TEST_CASE("P66, P67: what is wrong with a restriction is told where it stands", "[limits]")
{
    CHECK(complaint(read_ip_restriction, "ip_list=[\"::1\", \"not-an-ip\"]") ==
          "ip_list has \"not-an-ip\"; allowed are addresses and ranges such as 10.0.0.0/8");
    CHECK(complaint(read_ip_restriction, "type=\"block\"") ==
          "Invalid type(block), expect allow or deny");
    CHECK(complaint(read_ua_restriction, "ua_list=[\"ok\"]\ntype=\"Allow\"") == "-");
    CHECK(complaint(read_ua_restriction, "ua_list=[\"(x\"]") ==
          "ua_list has \"(x\", which is no pattern: missing ): (x at \"(x\"");
    CHECK(complaint(read_referer_restriction, "referer_list=[\"example.com\", \"*.x.org\"]") ==
          "-");
    CHECK(complaint(read_referer_restriction, "referer_list=[\"http://x.org\"]") ==
          "referer_list has \"http://x.org\"; allowed is a host, *. and a host, or *, without "
          "scheme and path");
    CHECK(complaint(read_uri_block, "paths=[\"[\"]") ==
          "paths has \"[\", which is no pattern: missing ]: [ at \"[\"");
    CHECK(complaint(read_uri_block, "queries=['\\.\\./']\nmethods=[\"GET\"]\nstatus=404") == "-");
    CHECK(complaint(read_uri_block, "") == "one of paths, queries and methods is required");
    CHECK(complaint(read_uri_block, "paths=[]") ==
          "paths, queries and methods are empty, so nothing would be blocked");
    CHECK(complaint(read_uri_block, "methods=[\"G T\"]") ==
          "methods has \"G T\", which is no name of a method");
    CHECK(complaint(read_uri_block, "methods=[\"GET\"]\nstatus=200") ==
          "status must be between 400 and 599");
    CHECK(complaint(read_ja4_restriction, "ja4_list=['^t13d']\ntype=\"Deny\"") == "-");
    CHECK(complaint(read_ja4_restriction, "type=\"deny\"") == "ja4_list is required");
    CHECK(complaint(read_ja4_restriction, "ja4_list=[]") ==
          "ja4_list is empty; one pattern or more is required");
    CHECK(complaint(read_ja4_restriction, "ja4_list=['(']") ==
          "ja4_list has \"(\", which is no pattern: missing ): ( at \"(\"");
    CHECK(complaint(read_ua_restriction, "ua_lists=[\"x\"]") ==
          "!there is no key \"ua_lists\" here, so it has no effect; did you mean ua_list?");

    auto doc = read("ua_list = [\n  \"ok\",\n  \"(\"]\n");
    CHECK_FALSE(read_ua_restriction(plugin(doc)));
    CHECK(doc.errors()[0].at == place{4, 3});
}

TEST_CASE("what a restriction loads, it can be made of", "[limits]")
{
    auto doc = read("ua_list=['a']\n");
    CHECK_NOTHROW(http::ua_restriction(*read_ua_restriction(plugin(doc))));
    doc = read("paths=['a']\nmethods=['get']\n");
    CHECK_NOTHROW(http::uri_block(*read_uri_block(plugin(doc))));
    doc = read("referer_list=['*', '*.a.b']\n");
    CHECK_NOTHROW(http::referer_restriction(*read_referer_restriction(plugin(doc))));
    doc = read("ja4_list=['^t13']\n");
    CHECK_NOTHROW(http::ja4_restriction(*read_ja4_restriction(plugin(doc))));
    doc = read("ip_list=['::/0']\n");
    CHECK_NOTHROW(http::ip_restriction(*read_ip_restriction(plugin(doc))));
}

TEST_CASE("the room for counters is read from a table that has other keys too", "[limits]")
{
    auto       doc = document::parse("[basic]\nmax_keys=500\nmax_inflight=10\nsketch_rows=8\n"
                                           "sketch_columns=51000\n",
                                     "f");
    const auto of  = read_counters(doc.root().child("basic"));
    CHECK(of.max_keys == 500);
    CHECK(of.max_inflight == 10);
    CHECK(of.sketch.depth == 8);
    CHECK(of.sketch.width == 51'000);
    CHECK(doc.ok());

    const auto wrong = document::parse("max_keys=0\nsketch_rows=9\nsketch_columns=1\n", "f");
    CHECK(read_counters(wrong.root()).max_keys == http::counters_options().max_keys);
    CHECK(wrong.errors().size() == 3);
}

TEST_CASE("docs/configuration.md names keys that exist, in every section", "[limits]")
{
    std::ifstream file(std::string(WEIR_VECTORS_DIR) + "/../../docs/configuration.md");
    REQUIRE(file);
    std::string section, told_of;
    std::size_t keys = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("##")) section = line;
        const auto end = line.find("` | ");
        if (!line.starts_with("| `") || end == std::string::npos || section == "### Presets")
            continue;
        const auto key = line.substr(3, end - 3);
        if (key.find('`') != std::string::npos) continue;
        auto       doc  = read(key + " = 1979-05-27\n");
        const auto from = plugin(doc);
        if (section.ends_with("\"limit\"")) static_cast<void>(read_limit(from));
        else if (section.ends_with("\"ip_restriction\""))
            static_cast<void>(read_ip_restriction(from));
        else if (section.ends_with("\"ua_restriction\""))
            static_cast<void>(read_ua_restriction(from));
        else if (section.ends_with("\"referer_restriction\""))
            static_cast<void>(read_referer_restriction(from));
        else if (section.ends_with("\"ja4_restriction\""))
            static_cast<void>(read_ja4_restriction(from));
        else if (section.ends_with("\"uri_block\"")) static_cast<void>(read_uri_block(from));
        else static_cast<void>(read_counters(from));
        doc.warn_of_strangers();
        for (const auto& one : doc.warnings())
            if (one.text.starts_with("there is no key")) told_of += section + ": " + key + "; ";
        ++keys;
    }
    CHECK(told_of.empty());
    CHECK(keys == 25 + 4 + 4 + 4 + 4 + 6 + 4);
}
