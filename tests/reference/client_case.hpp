// SPDX-License-Identifier: BSL-1.0
#pragma once

// One question to client_ip, and whether its answer holds what is promised of every answer. Shared
// by the property test, which makes up questions, and the fuzz target, which reads them from bytes.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/client_walk.hpp"
#include "weir/extract/client_ip.hpp"

namespace reference {

struct trust_case {
    std::vector<std::string> trusted = {};
    int                      hops    = 0;
};

inline const std::vector<trust_case>& trust_cases()
{
    static const std::vector<trust_case> all = {
        {{"10.0.0.0/8", "192.168.1.1", "fd00::/8"}, 0},
        {{}, 1},
        {{}, 3},
        {{"10.0.0.0/8", "fd00::/8", "unix"}, 2},
        {{"0.0.0.0/0", "::/0"}, 0},
        {{"unix"}, 0},
        {{"::ffff:10.0.0.0/104", "2001:db8::/33", "198.51.100.4"}, 0},
        {{}, 0},
    };
    return all;
}

inline constexpr std::array peer_texts = {"10.0.0.1", "unix",           "198.51.100.4",
                                          "fd00::1",  "2001:db8::99",   "",
                                          "0.0.0.0",  "::ffff:10.0.0.9"};

struct client_case {
    std::size_t              trust     = 0;
    std::size_t              peer      = 0;
    bool                     forwarded = false;
    std::vector<std::string> lines     = {};
};

/// Byte 0: trust case and grammar; byte 1: peer; the rest: lines divided by line feeds.
inline std::optional<client_case> case_from(const std::uint8_t* data, std::size_t size)
{
    if (size < 2) return std::nullopt;
    client_case out{data[0] % trust_cases().size(), data[1] % peer_texts.size(), data[0] >= 128};
    const std::string rest(data + 2, data + size);
    if (rest.empty()) return out;
    std::size_t from = 0;
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n', from)) {
        out.lines.push_back(rest.substr(from, end - from));
        from = end + 1;
    }
    out.lines.push_back(rest.substr(from));
    return out;
}

inline packet_address packet(const weir::address& one)
{
    const auto bytes = one.bytes();
    return {bytes.begin(), bytes.begin() + (one.is_v4() ? 4 : 16)};
}

inline std::optional<packet_address> packet(const std::optional<weir::address>& one)
{
    return one ? std::optional(packet(*one)) : std::nullopt;
}

/// Sources are made once: a fuzzer asks them millions of times.
inline const weir::client_ip& source_of(const client_case& it)
{
    static std::vector<std::unique_ptr<weir::client_ip>> made;
    if (made.empty())
        for (const auto* header : {"X-Forwarded-For", "Forwarded"})
            for (const auto& each : trust_cases())
                made.push_back(std::make_unique<weir::client_ip>(
                    weir::client_ip_options{.trusted_hops = each.hops,
                                            .trusted      = each.trusted,
                                            .header       = header,
                                            .warn         = nullptr}));
    return *made[it.trust + (it.forwarded ? trust_cases().size() : 0)];
}

inline settings settings_of(const client_case& it)
{
    const auto& from = trust_cases()[it.trust];
    settings    out{it.forwarded, from.hops};
    for (const auto& entry : from.trusted) {
        const auto slash = entry.find('/');
        if (entry == "unix") {
            out.unix_socket = true;
            continue;
        }
        range      one{read_address(entry.substr(0, slash)).value()};
        const auto mapped = entry.starts_with("::ffff:") ? 96 : 0;
        one.prefix        = slash == entry.npos ? static_cast<int>(one.network.size()) * 8
                                                : std::stoi(entry.substr(slash + 1)) - mapped;
        out.trusted.push_back(one);
    }
    return out;
}

inline weir::client ask(const client_case& it, std::string_view peer,
                        const std::vector<std::string>& lines)
{
    std::vector<weir::header_line> all;
    for (const auto& value : lines)
        all.push_back({it.forwarded ? "forwarded" : "x-forwarded-for", value});
    return source_of(it)(weir::request(all, {.peer = weir::peer::parse(peer)}));
}

/// What is wrong with how a line reads as an address, with or without port; empty if nothing is.
inline std::string wrong_text(const std::string& line)
{
    const auto one = weir::address::parse(line);
    if (packet(one) != read_address(line)) return "not what inet_pton reads";
    if (packet(weir::address::parse_endpoint(line)) != read_endpoint(line))
        return "not the endpoint";
    if (one && weir::address::parse(to_string(*one)) != one) return "the printed form is another";
    if (!one || one->is_v4()) return {};

    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(AF_INET6, packet(*one).data(), text.data(), text.size());
    const std::string printed = text.data();  // with dots if it is IPv4-compatible: ours has none
    return printed.find('.') != printed.npos || printed == to_string(*one) ? ""
                                                                           : "printed " + printed;
}

/// What the answer breaks of what is promised; empty if nothing.
inline std::string wrong(const client_case& it)
{
    for (const auto& line : it.lines)
        if (const auto why = wrong_text(line); !why.empty()) return why;

    const auto how  = settings_of(it);
    const auto peer = weir::peer::parse(peer_texts[it.peer]);
    const auto who  = ask(it, peer_texts[it.peer], it.lines);
    const auto slow = client_of(how, {packet(peer.address()), peer.is_unix_socket()}, it.lines);
    if (packet(who.address()) != slow.client) return "not the client of the slow walk";
    if (who.degraded().has_value() != slow.degraded) return "degraded unlike the slow walk";
    if (!who) return who.degraded() ? "" : "none, and not degraded";

    const auto text = to_string(*who.address());
    if (weir::address::parse(text) != who.address()) return "not canonical";

    const auto trusts = [&](const packet_address& one) {
        return std::any_of(how.trusted.begin(), how.trusted.end(),
                           [&](const range& r) { return r.holds(one); });
    };
    if (trusts(packet(*who.address())) && !who.degraded() && how.hops == 0 && !it.lines.empty() &&
        !slow.all_trusted)
        return "a trusted address although not all are trusted";
    if (how.hops == 0 && !how.trusted.empty() && !trusts(packet(*who.address())) && it.peer == 0 &&
        it.trust != 5) {
        const auto line  = !it.forwarded            ? text
                           : who.address()->is_v4() ? "for=" + text
                                                    : "for=\"[" + text + "]\"";
        const auto again = ask(it, peer_texts[it.peer], {line});
        if (again.address() != who.address() || again.degraded()) return "not idempotent";
    }
    return {};
}

}  // namespace reference
