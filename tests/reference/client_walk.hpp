// SPDX-License-Identifier: BSL-1.0
#pragma once

// The client of a request, found slowly and by other means than the library: addresses by
// inet_pton, ranges bit by bit, lists copied out token by token, Forwarded by trying every suffix.

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reference {

/// The bytes as they stand in a packet: four or sixteen.
using packet_address = std::vector<unsigned char>;

inline std::optional<packet_address> read_address(std::string text)
{
    if (text.find('\0') != text.npos) return std::nullopt;
    if (in_addr v4{}; inet_pton(AF_INET, text.c_str(), &v4) == 1) {
        const auto* from = reinterpret_cast<const unsigned char*>(&v4);
        return packet_address(from, from + 4);
    }
    if (const auto zone = text.find('%'); zone != text.npos) {
        const auto id = text.substr(zone + 1);
        if (id.empty() || id.size() > 64) return std::nullopt;
        for (const char c : id)
            if (!(std::isalnum(static_cast<unsigned char>(c)) &&
                  static_cast<unsigned char>(c) < 128) &&
                std::strchr(".-_~", c) == nullptr)
                return std::nullopt;
        text.resize(zone);
    }
    in6_addr v6{};
    if (text.size() > 45 || inet_pton(AF_INET6, text.c_str(), &v6) != 1) return std::nullopt;
    const auto* from = reinterpret_cast<const unsigned char*>(&v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6)) return packet_address(from + 12, from + 16);
    return packet_address(from, from + 16);
}

inline bool is_port(const std::string& text)
{
    return !text.empty() && text.size() <= 5 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
           std::stoi(text) <= 65535;
}

/// Tries every way to cut a port off.
inline std::optional<packet_address> read_endpoint(const std::string& text)
{
    for (std::size_t end = 0; end <= text.size(); ++end) {
        const auto head = text.substr(0, end), tail = text.substr(end);
        if (!tail.empty() && (tail[0] != ':' || !is_port(tail.substr(1)))) continue;
        if (head.size() > 2 && head.front() == '[' && head.back() == ']') {
            const auto inside = head.substr(1, head.size() - 2);
            if (inside.find(':') != inside.npos)
                if (auto found = read_address(inside)) return found;
        } else if (auto found = read_address(head)) {
            if (tail.empty() || head.find(':') == head.npos) return found;
        }
    }
    return std::nullopt;
}

struct range {
    packet_address network;
    int            prefix = 0;

    bool holds(const packet_address& one) const
    {
        if (one.size() != network.size()) return false;
        for (int i = 0; i < prefix; ++i) {
            const auto at = static_cast<std::size_t>(i / 8);
            if ((one[at] >> (7 - i % 8) & 1) != (network[at] >> (7 - i % 8) & 1)) return false;
        }
        return true;
    }
};

inline std::string without_blanks(const std::string& text)
{
    std::size_t from = 0, to = text.size();
    while (from < to && (text[from] == ' ' || text[from] == '\t')) ++from;
    while (to > from && (text[to - 1] == ' ' || text[to - 1] == '\t')) --to;
    return text.substr(from, to - from);
}

/// One element by the letter of RFC 7239 as a machine of states. Not an element: nothing; an
/// element without an address to believe: an empty one.
inline std::optional<packet_address> read_forwarded(const std::string& element)
{
    enum {
        at_name,
        in_name,
        at_value,
        in_token,
        in_quotes,
        in_escape,
        behind_quotes
    } state = at_name;
    std::set<std::string>         names;
    std::string                   name, value;
    bool                          quoted   = false;
    std::optional<packet_address> found    = packet_address{};
    const auto                    is_tchar = [](char c) {
        return (std::isalnum(static_cast<unsigned char>(c)) != 0 &&
                static_cast<unsigned char>(c) < 128) ||
               (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
    };
    const auto is_inside = [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
    };
    const auto end_pair = [&] {
        for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        if (!names.insert(name).second || names.size() > 16) return false;
        if (name == "for") {
            auto       host   = value;
            const auto hidden = value.rfind(":_");
            if (quoted && hidden != value.npos && hidden + 2 < value.size() &&
                std::all_of(value.begin() + static_cast<std::ptrdiff_t>(hidden) + 2, value.end(),
                            [](char c) {
                                return (std::isalnum(static_cast<unsigned char>(c)) != 0 &&
                                        static_cast<unsigned char>(c) < 128) ||
                                       c == '.' || c == '_' || c == '-';
                            }))
                host = value.substr(0, hidden) + ":1";
            const bool v6 = !host.empty() && host[0] == '[';
            found         = host.find('%') == host.npos ? read_endpoint(host) : std::nullopt;
            const bool needs_quotes = v6 || host.find(':') != host.npos;
            if (!found || needs_quotes != quoted ||
                (!v6 && std::count(host.begin(), host.end(), ':') > 1))
                found = packet_address{};
        }
        name.clear(), value.clear();
        return true;
    };
    for (const char c : element + ';') {
        switch (state) {
        case at_name:
            if (c == ';') break;
            [[fallthrough]];
        case in_name:
            if (state == in_name && c == '=') state = at_value;
            else if (is_tchar(c)) name += c, state = in_name;
            else return std::nullopt;
            break;
        case at_value:
            quoted = c == '"';
            if (quoted) state = in_quotes;
            else if (is_tchar(c)) value += c, state = in_token;
            else return std::nullopt;
            break;
        case in_quotes:
            if (!is_inside(c)) return std::nullopt;
            if (c == '"') state = behind_quotes;
            else value += c;
            if (c == '\\') state = in_escape;
            break;
        case in_escape:
            if (!is_inside(c)) return std::nullopt;
            value += c, state = in_quotes;
            break;
        case in_token:
        case behind_quotes:
            if (state == in_token && is_tchar(c)) value += c;
            else if (c != ';' || !end_pair()) return std::nullopt;
            else state = at_name;
            break;
        }
    }
    if (state != at_name || element.size() > 4096) return std::nullopt;
    return found;
}

/// Where the last Forwarded element of a line begins: behind the rightmost comma whose right side
/// is an element by the grammar; if there is none, behind the rightmost comma that an even number
/// of quotes follows, where a quote that closes nothing and stands behind a backslash is no quote.
inline std::size_t last_forwarded(const std::string& line)
{
    for (auto from = line.size() + 1; from-- > 0;)
        if (from == 0 || line[from - 1] == ',')
            if (const auto last = without_blanks(line.substr(from));
                last.empty() || read_forwarded(last))
                return from;
    for (auto from = line.size() + 1; from-- > 1;) {
        if (line[from - 1] != ',') continue;
        int quotes = 0;
        for (auto i = line.size(); i > from; --i)
            if (line[i - 1] == '"' && !(quotes % 2 == 1 && line[i - 2] == '\\')) ++quotes;
        if (quotes % 2 == 0) return from;
    }
    return 0;
}

struct settings {
    bool               forwarded   = false;  // the grammar; else plain
    int                hops        = 0;
    bool               unix_socket = false;
    std::vector<range> trusted     = {};
};

struct outcome {
    std::optional<packet_address> client;
    bool                          degraded    = false;
    bool                          all_trusted = false;  // the list ended with nobody untrusted

    friend bool operator==(const outcome&, const outcome&) = default;
};

/// What stands at the other end: an address, a Unix socket, or neither.
struct other_end {
    std::optional<packet_address> at          = {};
    bool                          unix_socket = false;
};

/// All tokens between commas, empty ones included, the last first.
inline std::vector<std::string> tokens(std::string line, bool forwarded)
{
    std::vector<std::string> out;
    for (;;) {
        const auto from = forwarded ? last_forwarded(line) : line.rfind(',') + 1;
        out.push_back(without_blanks(line.substr(from)));
        if (from == 0) return out;
        line.resize(from - 1);
    }
}

inline bool specified(const packet_address& one)
{
    return std::any_of(one.begin(), one.end(), [](unsigned char b) { return b != 0; });
}

inline outcome client_of(const settings& how, other_end peer, const std::vector<std::string>& lines)
{
    if (peer.at && !specified(*peer.at)) peer.at.reset();
    const auto trusts = [&](const packet_address& one) {
        return std::any_of(how.trusted.begin(), how.trusted.end(),
                           [&](const range& r) { return r.holds(one); });
    };
    const bool listed = how.unix_socket || !how.trusted.empty();
    const bool asked =
        peer.unix_socket ? how.unix_socket : peer.at && (listed ? trusts(*peer.at) : how.hops > 0);
    const auto result = [](const std::optional<packet_address>& who, bool degraded,
                           bool all = false) {
        return outcome{who, degraded || !who, all};
    };
    if (!asked || lines.empty()) return result(peer.at, false);

    std::vector<std::string> all;
    const bool               lost = lines.size() > 32;
    for (auto i = lines.size(); i-- > (lost ? lines.size() - 32 : 0);)
        for (auto& token : tokens(lines[i], how.forwarded)) all.push_back(std::move(token));
    std::vector<std::string> list;
    bool                     cut = lost;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (list.size() == 256) {
            cut = true;
            break;
        }
        if (!all[i].empty()) list.push_back(all[i]);
    }

    auto last = peer.at;
    for (std::size_t i = 0; i < list.size(); ++i) {
        auto found = how.forwarded ? read_forwarded(list[i]) : read_endpoint(list[i]);
        if (!found || !specified(*found)) {
            const bool too_short = list.size() < static_cast<std::size_t>(how.hops) && !cut;
            return result(too_short ? peer.at : last, true);
        }
        last = found;
        if (static_cast<int>(i) + 1 == how.hops || (listed && !trusts(*found)))
            return result(found, false);
    }
    if (cut) return result(last, true);
    if (how.hops > 0) return result(peer.at, true);
    return result(last, false, true);
}

}  // namespace reference
