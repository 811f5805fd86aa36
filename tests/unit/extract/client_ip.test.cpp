// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/client_ip.hpp"

#include <chrono>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "catch.hpp"
#include "reference/table.hpp"

using weir::client;
using weir::client_ip;
using weir::degradation;
using weir::warning;

namespace {

using texts = std::vector<std::string>;

std::vector<weir::header_line> lines_of(std::string_view header, const texts& values)
{
    std::vector<weir::header_line> out;
    for (const auto& value : values) out.push_back({header, value});
    return out;
}

client find(const client_ip& source, std::string_view peer, const texts& values,
            std::string_view    header   = "X-Forwarded-For",
            weir::line_fidelity fidelity = weir::line_fidelity::in_order)
{
    const auto lines = lines_of(header, values);
    return source(weir::request(lines, {.peer = weir::peer::parse(peer), .lines = fidelity}));
}

/// A row of client_address.tsv.
struct address_case {
    std::string             peer;
    weir::client_ip_options options;
    std::string             client, key, degraded;
    texts                   lines;

    explicit address_case(const reference::row& row)
        : peer(row[1]), client(row[5]), key(row[6]), degraded(row[7]),
          lines(row.begin() + 8, row.end())
    {
        std::istringstream entries(row[2] == "-" ? "" : row[2]);
        for (std::string entry; std::getline(entries, entry, ',');)
            options.trusted.push_back(entry);
        options.trusted_hops         = std::stoi(row[3]);
        options.header               = row[4];
        options.edge_replaces_header = row[4] != "X-Forwarded-For" && row[4] != "Forwarded";
        options.warn                 = nullptr;
    }
};

weir::key key_of(const client& who)
{
    static const weir::digest digest({1, 2}, 1, "site.ip", std::chrono::minutes(1));
    return digest(who);
}

client at(const char* text, int prefix = 64)
{
    return client(weir::address::parse(text).value(), prefix);
}

std::string refusal_of(const weir::client_ip_options& options)
{
    try {
        const client_ip source(options);
        return "accepted";
    } catch (const std::invalid_argument& wrong) {
        return wrong.what();
    }
}

}  // namespace

TEST_CASE("the client and its key and its degradation are those of the rows")
{
    for (const auto& row : reference::table("client_address.tsv", 8)) {
        INFO("row " << row[0]);
        const address_case it(row);
        const client_ip    source(it.options);
        const auto         who = find(source, it.peer, it.lines, it.options.header);
        CHECK((who ? to_string(*who.address()) : "none") == it.client);
        CHECK(to_string(who) == it.key);
        CHECK((who.degraded() ? name(*who.degraded()) : "-") == it.degraded);
    }
}

TEST_CASE("two rows have one key if and only if their clients print alike")
{
    std::vector<client> all;
    for (const auto& row : reference::table("client_address.tsv", 8)) {
        const address_case it(row);
        const client_ip    source(it.options);
        all.push_back(find(source, it.peer, it.lines, it.options.header));
    }
    std::size_t alike = 0;
    for (const auto& a : all)
        for (const auto& b : all) {
            INFO(to_string(a) << " and " << to_string(b));
            REQUIRE((key_of(a) == key_of(b)) == (to_string(a) == to_string(b)));
            alike += to_string(a) == to_string(b);
        }
    CHECK(alike > all.size());
}

TEST_CASE("a wrong entry of the trusted list is refused by its place and text")
{
    for (const auto& row : reference::table("trusted_errors.tsv", 2)) {
        INFO("row " << row[0] << ": " << row[1]);
        const auto refusal = refusal_of({.trusted = {"10.0.0.0/8", row[1]}, .warn = nullptr});
        CHECK(refusal.find("trusted[1] is \"" + row[1] + '"') != refusal.npos);
        CHECK(refusal.find("allowed is") != refusal.npos);
    }
}

TEST_CASE("A40 and every other wrong option is refused at construction")
{
    const auto names = [](const std::string& refusal, const char* option) {
        return refusal.find(option) != refusal.npos && refusal.find("allowed is") != refusal.npos;
    };
    CHECK(names(refusal_of({.trusted_hops = -999}), "trusted_hops is -999"));
    CHECK(names(refusal_of({.trusted_hops = 257}), "trusted_hops is 257"));
    CHECK(names(refusal_of({.prefix = 0}), "prefix is 0"));
    CHECK(names(refusal_of({.prefix = 129}), "prefix is 129"));
    CHECK(names(refusal_of({.header = "X-Real-IP"}), "header is \"X-Real-IP\""));
    CHECK(names(refusal_of({.header = "", .edge_replaces_header = true}), "header is \"\""));
    CHECK(names(refusal_of({.header = "a: b", .edge_replaces_header = true}), "header is"));
    CHECK(
        names(refusal_of({.trusted_hops = 2, .header = "X-Real-IP", .edge_replaces_header = true}),
              "trusted_hops with edge_replaces_header is 2"));
    CHECK(names(refusal_of({.trusted_hops = 1, .edge_replaces_header = true}),
                "edge_replaces_header"));
    CHECK(refusal_of({.trusted_hops = 256, .prefix = 128}) == "accepted");
    CHECK(refusal_of({.header = "forwarded", .prefix = 1}) == "accepted");
}

TEST_CASE("a refused entry is told on one short line whatever bytes it holds")
{
    const auto refusal = refusal_of({.trusted = {std::string(100'000, 'x') + "\n", "\n\t\x7f"}});
    CHECK(refusal.size() < 250);
    CHECK(refusal.find('\n') == refusal.npos);
    CHECK(refusal_of({.trusted = {"\n\x7f"}}).find("\"?\?\"") != std::string::npos);
}

TEST_CASE("O04 and O05 a port makes no client new and hides none")
{
    const client_ip source({.trusted = {"10.0.0.4"}});
    const auto      first = find(source, "10.0.0.4", {"203.0.113.7:50001"});
    CHECK(key_of(first) == key_of(find(source, "10.0.0.4", {"203.0.113.7:50002"})));
    CHECK(key_of(first) != key_of(find(source, "10.0.0.4", {"203.0.113.8:50001"})));
    CHECK(key_of(first) != key_of(at("10.0.0.4")));
}

TEST_CASE("O09 a whole network of 64 bits is one client and its tier of 48 bits holds its siblings")
{
    const auto one = at("2001:db8:1:2::1"), same = at("2001:db8:1:2:ffff::"),
               next = at("2001:db8:1:3::1");
    CHECK(key_of(one) == key_of(same));
    CHECK(key_of(one) != key_of(next));
    CHECK(key_of(one.tier(48)) == key_of(next.tier(48)));
    CHECK(key_of(one.tier(48)) != key_of(at("2001:db8:2::").tier(48)));
    CHECK(key_of(one.tier(48)) != key_of(one));
    CHECK(to_string(one.tier(48)) == "2001:db8:1::/48");
}

TEST_CASE("a tier is never narrower than its client and leaves IPv4 and none alone")
{
    const auto one = at("2001:db8:1:2::1");
    CHECK(one.tier(128) == one);
    CHECK(one.tier(48).tier(56) == one.tier(48));
    CHECK(to_string(one.tier(0)) == "::/0");
    CHECK(one.tier(-5) == one.tier(0));
    CHECK(at("203.0.113.7").tier(24) == at("203.0.113.7"));
    CHECK(client{}.tier(48) == client{});
    const client degraded(*one.address(), 64, degradation::list_too_short);
    CHECK(degraded.tier(48).degraded() == degradation::list_too_short);
}

TEST_CASE("O10 parts that hold an address are never run together")
{
    const weir::digest digest({1, 2}, 1, "pair", std::chrono::minutes(1));
    CHECK(digest(weir::parts{"10.0.0.1", "1/x"}) != digest(weir::parts{"10.0.0.11", "/x"}));
    CHECK(digest(weir::parts{"a|b", "c"}) != digest(weir::parts{"a", "b|c"}));
    CHECK(digest(weir::parts{at("10.0.0.1"), "x"}) != digest(weir::parts{at("10.0.0.11"), "x"}));
    CHECK(digest(weir::parts{at("10.0.0.1"), "x"}) ==
          digest(weir::parts{at("::ffff:10.0.0.1"), "x"}));
}

TEST_CASE("the counted bytes are family and prefix and the masked address")
{
    using namespace std::string_view_literals;
    CHECK(at("203.0.113.7").bytes() == "\x04\x20\xcb\x00\x71\x07\0\0\0\0\0\0\0\0\0\0\0\0"sv);
    CHECK(at("2001:db8:1:2:3::").bytes() ==
          "\x06\x40\x20\x01\x0d\xb8\x00\x01\x00\x02\0\0\0\0\0\0\0\0"sv);
    CHECK(client{}.bytes() == "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv);
    CHECK(client(degradation::element_unreadable).bytes() == client{}.bytes());
}

TEST_CASE("F51 all requests without an address are one subject and can be told apart from a client")
{
    const client_ip source;
    const auto      unix_socket = find(source, "unix", {}), unknown = find(source, "", {});
    CHECK_FALSE(unix_socket);
    CHECK(unix_socket.degraded() == degradation::no_peer_address);
    CHECK(key_of(unix_socket) == key_of(unknown));
    CHECK(key_of(unknown) != key_of(at("::", 1)));
    CHECK(find(source, "203.0.113.7", {}));
}

TEST_CASE("several lines count only if the server kept their order")
{
    const client_ip source({.trusted = {"10.0.0.0/8"}});
    const texts     two = {"9.9.9.9", "6.6.6.6"}, one = {"9.9.9.9"};
    const auto      any = weir::line_fidelity::any_order;
    const auto      who = find(source, "10.0.0.1", two, "X-Forwarded-For", any);
    CHECK(to_string(who) == "10.0.0.1");
    CHECK(who.degraded() == degradation::line_order_unknown);
    CHECK(to_string(find(source, "10.0.0.1", one, "X-Forwarded-For", any)) == "9.9.9.9");
}

TEST_CASE("one line is believed from a server that drops the others only if the proxy joins lines")
{
    const auto dropped = weir::line_fidelity::later_dropped;
    const auto ask     = [&](weir::client_ip_options options, std::string_view header) {
        return find(client_ip(options), "10.0.0.1", {"9.9.9.9"}, header, dropped);
    };
    const auto who = ask({.trusted_hops = 1}, "X-Forwarded-For");
    CHECK(to_string(who) == "10.0.0.1");
    CHECK(who.degraded() == degradation::lines_may_be_missing);
    CHECK(to_string(ask({.trusted_hops = 1, .proxy_joins_lines = true}, "X-Forwarded-For")) ==
          "9.9.9.9");
    CHECK(to_string(ask({.header = "X-Real-IP", .edge_replaces_header = true}, "X-Real-IP")) ==
          "9.9.9.9");
}

TEST_CASE("an edge that overwrites a list is believed about its first element")
{
    const client_ip plain({.edge_replaces_header = true});
    CHECK(to_string(find(plain, "10.0.0.1", {"203.0.113.7, 10.1.1.1", "10.1.1.2"})) ==
          "203.0.113.7");
    CHECK(find(plain, "10.0.0.1", {"blah, 10.1.1.1"}).degraded() ==
          degradation::element_unreadable);
    const client_ip forwarded({.header = "Forwarded", .edge_replaces_header = true});
    CHECK(to_string(find(forwarded, "10.0.0.1", {"for=203.0.113.7, for=10.1.1.1"}, "Forwarded")) ==
          "203.0.113.7");
    std::string endless;
    for (int i = 0; i < 300; ++i) endless += "9.9.9.9,";
    CHECK(find(plain, "10.0.0.1", {endless}).degraded() == degradation::list_too_long);
}

TEST_CASE("A55 no header is read but the one that is set")
{
    const std::vector<weir::header_line> lines = {
        {"X-Forwarded-For", "1.1.1.1"}, {"Client-IP", "2.2.2.2"}, {"Forwarded", "for=3.3.3.3"}};
    const weir::request from(lines, {.peer = weir::peer::parse("127.0.0.1")});
    CHECK(to_string(client_ip({.trusted = {"private"}})(from)) == "1.1.1.1");
    CHECK(to_string(client_ip({.trusted = {"private"}, .header = "FORWARDED"})(from)) == "3.3.3.3");
    CHECK(to_string(client_ip({.header = "client-ip", .edge_replaces_header = true})(from)) ==
          "2.2.2.2");
}

TEST_CASE("the prefix that is set is the one that is counted by")
{
    CHECK(to_string(find(client_ip({.prefix = 56}), "2001:db8:1:2ff::1", {})) ==
          "2001:db8:1:200::/56");
    CHECK(to_string(find(client_ip({.prefix = 128}), "2001:db8::1", {})) == "2001:db8::1/128");
    CHECK(to_string(find(client_ip({.prefix = 32}), "203.0.113.7", {})) == "203.0.113.7");
}

TEST_CASE("more elements or lines than are read leave the last trusted address degraded")
{
    const client_ip source({.trusted = {"10.0.0.0/8"}});
    std::string     elements;
    for (int i = 0; i < weir::element_walk::most_elements; ++i) elements += ",10.0.0.2";
    auto who = find(source, "10.0.0.1", {"9.9.9.9" + elements});
    CHECK(to_string(who) == "10.0.0.2");
    CHECK(who.degraded() == degradation::list_too_long);
    CHECK(to_string(find(source, "10.0.0.1", {"9.9.9.9" + elements.substr(9)})) == "9.9.9.9");

    texts lines(weir::element_walk::most_lines, "10.0.0.3");
    CHECK_FALSE(find(source, "10.0.0.1", lines).degraded());
    lines.insert(lines.begin(), "9.9.9.9");
    who = find(source, "10.0.0.1", lines);
    CHECK(to_string(who) == "10.0.0.3");
    CHECK(who.degraded() == degradation::list_too_long);
    lines.back() = "8.8.8.8";
    CHECK(to_string(find(source, "10.0.0.1", lines)) == "8.8.8.8");
}

TEST_CASE("four mebibytes of header end in linear time")
{
    constexpr std::size_t size = 4U << 20;
    std::string           pairs, quotes;
    while (pairs.size() < size) pairs += "a=\"\\\",;";
    while (quotes.size() < size) quotes += "\",\\";
    const texts     all = {std::string(size, ','),
                           std::string(size, '"'),
                           std::string(size, ':'),
                           std::string(size, ';'),
                           std::string(size, 'f'),
                           pairs,
                           quotes};
    const client_ip plain({.trusted = {"10.0.0.0/8"}});
    const client_ip forwarded({.trusted_hops = 200, .header = "Forwarded"});
    const auto      begun = std::chrono::steady_clock::now();
    for (const auto& line : all) {
        CHECK(find(plain, "10.0.0.1", {line}).address() == weir::address::parse("10.0.0.1"));
        CHECK(find(forwarded, "10.0.0.1", {line}, "Forwarded").address() ==
              weir::address::parse("10.0.0.1"));
    }
    // Linear is some 0.1 s here and squared would be hours.
    CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(60));
}

namespace {

std::atomic<int> told = 0;

}  // namespace

TEST_CASE("hops and a public peer are warned about once and a private or listed peer is not")
{
    told = 0;
    const client_ip source({.trusted_hops = 1, .warn = [](warning) { ++told; }});
    find(source, "10.0.0.1", {"9.9.9.9"});
    find(source, "100.64.0.1", {"9.9.9.9"});
    CHECK(source.warnings().empty());
    for (int i = 0; i < 3; ++i) find(source, "198.51.100.7", {"9.9.9.9"});
    CHECK(source.warnings() == std::vector{warning::hops_with_public_peer});
    CHECK(told == 1);

    const client_ip listed({.trusted_hops = 1, .trusted = {"198.51.100.0/24"}, .warn = nullptr});
    find(listed, "198.51.100.7", {"9.9.9.9"});
    CHECK(listed.warnings().empty());
}

TEST_CASE("a forwarded header is warned about once while nobody is trusted and never believed")
{
    told = 0;
    const client_ip source({.warn = [](warning) { ++told; }});
    find(source, "10.0.0.1", {});
    find(source, "10.0.0.1", {"for=9.9.9.9"}, "Forwarded");
    CHECK(source.warnings().empty());
    CHECK(to_string(find(source, "10.0.0.1", {"9.9.9.9", "8.8.8.8"})) == "10.0.0.1");
    CHECK(to_string(find(source, "10.0.0.1", {"9.9.9.9"})) == "10.0.0.1");
    CHECK(source.warnings() == std::vector{warning::forwarded_header_ignored});
    CHECK(told == 1);

    const client_ip proxied({.trusted = {"10.0.0.0/8"}, .warn = nullptr});
    find(proxied, "9.9.9.9", {"8.8.8.8"});
    CHECK(proxied.warnings().empty());
}

TEST_CASE("A17 a trusted list that covers everything is warned about when it is made")
{
    const auto warned = [](texts trusted) {
        return !client_ip({.trusted = std::move(trusted), .warn = nullptr}).warnings().empty();
    };
    CHECK(warned({"0.0.0.0/0"}));
    CHECK(warned({"::/0"}));
    CHECK(warned({"::ffff:0:0/96"}));
    CHECK(warned({"0.0.0.0/1", "10.0.0.0/8", "128.0.0.0/1"}));
    CHECK(warned({"2000::/3"}));
    CHECK_FALSE(warned({"0.0.0.0/1", "128.0.0.0/2"}));
    CHECK_FALSE(warned({"private", "unix", "2000::/4"}));
}

TEST_CASE("a warning is told once however many threads see it")
{
    told = 0;
    const client_ip          source({.trusted_hops = 1, .warn = [](warning) { ++told; }});
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            for (int n = 0; n < 1000; ++n) find(source, "198.51.100.7", {"9.9.9.9"});
        });
    for (auto& one : threads) one.join();
    CHECK(told == 1);
}

TEST_CASE("names of warnings and degradations are words that a page can have as anchors")
{
    const auto is_word = [](std::string_view text) {
        return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == text.npos;
    };
    for (const auto one : {warning::hops_with_public_peer, warning::forwarded_header_ignored,
                           warning::trust_covers_everything}) {
        CHECK(is_word(name(one)));
        CHECK(text(one).size() > 40);
    }
    for (int i = 0; i <= static_cast<int>(degradation::lines_may_be_missing); ++i)
        CHECK(is_word(name(static_cast<degradation>(i))));
    CHECK(name(static_cast<degradation>(99)) == "unnamed");
    CHECK(name(static_cast<warning>(99)) == "unnamed");
    CHECK(text(static_cast<warning>(99)).empty());
}
