// SPDX-License-Identifier: BSL-1.0

#include "head.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace proxy {

using weir::same_header_name;

namespace {

constexpr int ready = 200, need_more = 0, bad = 400;

enum character : std::uint8_t { token_char = 1, value_char = 2, target_char = 4, host_char = 8 };

constexpr auto characters = [] {
    std::array<std::uint8_t, 256> table{};
    const auto                    mark = [&](std::string_view all, std::uint8_t as) {
        for (const char c : all) table[static_cast<unsigned char>(c)] |= as;
    };
    for (unsigned c = 0x20; c < 0x100; ++c)
        if (c != 0x7f) table[c] |= value_char;
    table['\t'] |= value_char;
    for (unsigned c = 0x21; c < 0x7f; ++c) table[c] |= target_char;
    constexpr std::string_view letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    mark(letters, token_char | host_char);
    mark("!#$%&'*+-.^_`|~", token_char);
    mark("-._~:[]%!$&'()*+;=", host_char);
    return table;
}();

constexpr bool all_are(std::string_view text, character kind) noexcept
{
    for (const char c : text)
        if ((characters[static_cast<unsigned char>(c)] & kind) == 0) return false;
    return true;
}

struct named {
    std::string_view name;
    field            is;
};

/// By length, so that a name is compared with one or two at most.
constexpr std::array known = {
    named{"TE", field::hop},
    named{"Via", field::via},
    named{"Host", field::host},
    named{"Vary", field::vary},
    named{"Date", field::date},
    named{"Range", field::range},
    named{"Expect", field::expect},
    named{"Trailer", field::trailer},
    named{"Upgrade", field::hop},
    named{"Forwarded", field::forwarded},
    named{"X-Real-IP", field::x_real_ip},
    named{"Connection", field::connection},
    named{"Keep-Alive", field::hop},
    named{"Set-Cookie", field::set_cookie},
    named{"Authorization", field::authorization},
    named{"Cache-Control", field::cache_control},
    named{"Content-Range", field::content_range},
    named{"Content-Length", field::content_length},
    named{"HTTP2-Settings", field::hop},
    named{"X-Forwarded-For", field::x_forwarded_for},
    named{"Proxy-Connection", field::hop},
    named{"Transfer-Encoding", field::transfer_encoding},
    named{"X-Forwarded-Proto", field::x_forwarded_proto},
    named{"Proxy-Authenticate", field::hop},
    named{"Proxy-Authorization", field::hop},
};
static_assert(std::ranges::is_sorted(known, {}, [](const named& one) { return one.name.size(); }));

constexpr auto first_of_length = [] {
    std::array<std::uint8_t, 24> first{};
    for (std::size_t length = 0; length < first.size(); ++length)
        first[length] = static_cast<std::uint8_t>(
            std::ranges::lower_bound(known, length, {},
                                     [](const named& one) { return one.name.size(); }) -
            known.begin());
    return first;
}();

/// The next line, its CRLF taken off. None: no LF has come. A lone CR or LF makes it `broken`.
struct line_reader {
    std::string_view rest;
    bool             broken = false;

    std::optional<std::string_view> next() noexcept
    {
        const auto end = rest.find('\n');
        if (end == rest.npos) return std::nullopt;
        broken          = end == 0 || rest[end - 1] != '\r';
        const auto line = rest.substr(0, broken ? end : end - 1);
        rest.remove_prefix(end + 1);
        return line;
    }
};

int take_line(std::string_view line, message_head& into)
{
    const auto colon = line.find(':');
    // A folded line begins with a blank, which is in no name; nor is one before the colon.
    if (colon == line.npos || !is_token(line.substr(0, colon))) return bad;
    const auto value = trimmed(line.substr(colon + 1));
    if (!all_are(value, value_char)) return bad;
    into.lines.push_back({line.substr(0, colon), value});
    into.kinds.push_back(field_named(line.substr(0, colon)));
    return ready;
}

int take_lines(line_reader& from, std::size_t size, message_head& into)
{
    into.lines.clear();
    into.kinds.clear();
    while (const auto line = from.next()) {
        if (from.broken) return bad;
        if (line->empty()) {
            into.bytes = size - from.rest.size();
            return ready;
        }
        if (const int status = take_line(*line, into); status != ready) return status;
    }
    return need_more;
}

bool read_length(std::string_view text, std::uint64_t& into) noexcept
{
    if (text.empty() || text.size() > 18) return false;
    into = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return false;
        into = into * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return true;
}

/// False if one of its words is none.
bool take_connection(std::string_view value, message_head& into, bool& keeps) noexcept
{
    bool good = true;
    each_element(value, [&](std::string_view word) {
        good = good && is_token(word);
        if (same_header_name(word, "close")) into.keep_alive = false;
        else if (same_header_name(word, "keep-alive")) keeps = true;
        else into.names_hops = true;
    });
    return good;
}

/// Length, coding and Connection. One line of each kind that frames the body, or none.
int take_framing(message_head& into)
{
    bool length_seen = false, coding_seen = false, keeps = false;
    into.keep_alive = true;
    into.names_hops = false;
    into.body       = {};
    for (std::size_t i = 0; i < into.lines.size(); ++i) {
        const auto value = into.lines[i].value;
        if (into.kinds[i] == field::content_length) {
            if (length_seen || !read_length(value, into.body.length)) return bad;
            length_seen = true;
        } else if (into.kinds[i] == field::transfer_encoding) {
            if (coding_seen || into.minor == 0) return bad;
            if (!same_header_name(value, "chunked")) return 501;
            coding_seen = true;
        } else if (into.kinds[i] == field::connection) {
            if (!take_connection(value, into, keeps)) return bad;
        }
    }
    if (length_seen && coding_seen) return bad;
    if (length_seen) into.body.by = body_plan::kind::length;
    if (coding_seen) into.body.by = body_plan::kind::chunked;
    into.keep_alive = into.keep_alive && (into.minor > 0 || keeps);
    return ready;
}

/// `HTTP/1.0` or `HTTP/1.1`; 505 for another version of HTTP.
int read_version(std::string_view text, int& minor) noexcept
{
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (text.size() != 8 || !text.starts_with("HTTP/") || text[6] != '.' || !digit(text[5]) ||
        !digit(text[7]))
        return bad;
    if (text[5] != '1' || text[7] > '1') return 505;
    minor = text[7] - '0';
    return ready;
}

/// An absolute target stands for itself and its Host (RFC 9112 section 3.2.2).
bool split_target(request_head& into) noexcept
{
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!same_header_name(into.target.substr(0, scheme.size()), scheme)) continue;
        const auto rest = into.target.substr(scheme.size());
        const auto path = std::min(rest.find_first_of("/?#"), rest.size());
        into.authority  = rest.substr(0, path);
        into.target     = path == rest.size() ? std::string_view("/") : rest.substr(path);
        return !into.authority.empty() && all_are(into.authority, host_char) &&
               into.target.front() == '/';
    }
    return into.target.front() == '/' || into.target == "*";
}

int read_request_line(std::string_view line, request_head& into) noexcept
{
    const auto first = line.find(' '), last = line.rfind(' ');
    if (first == line.npos || first == last) return bad;
    into.method    = line.substr(0, first);
    into.target    = line.substr(first + 1, last - first - 1);
    into.authority = {};
    if (!is_token(into.method) || into.target.empty() || !all_are(into.target, target_char) ||
        into.target.find('#') != into.target.npos)
        return bad;
    if (const int status = read_version(line.substr(last + 1), into.minor); status != ready)
        return status;
    return split_target(into) ? ready : bad;
}

int take_host(request_head& into) noexcept
{
    const auto hosts = std::ranges::count(into.kinds, field::host);
    if (hosts > 1 || (hosts == 0 && into.minor > 0)) return bad;
    const auto host = into.first(field::host);
    if (!all_are(host, host_char)) return bad;
    if (into.authority.empty()) into.authority = host;
    return ready;
}

int take_expect(request_head& into) noexcept
{
    into.expects = false;
    for (std::size_t i = 0; i < into.lines.size(); ++i) {
        if (into.kinds[i] != field::expect) continue;
        if (!same_header_name(into.lines[i].value, "100-continue")) return 417;
        into.expects = into.minor > 0 && into.body.by != body_plan::kind::none;
    }
    return ready;
}

int read_status_line(std::string_view line, response_head& into) noexcept
{
    if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) return bad;
    std::uint64_t status = 0;
    if (!read_length(line.substr(9, 3), status) || status < 100 || status > 599) return bad;
    into.status = static_cast<int>(status);
    into.reason = line.size() > 13 ? line.substr(13) : std::string_view();
    return all_are(into.reason, value_char) ? read_version(line.substr(0, 8), into.minor) : bad;
}

}  // namespace

bool is_token(std::string_view text) noexcept { return !text.empty() && all_are(text, token_char); }

field field_named(std::string_view name) noexcept
{
    if (name.size() >= first_of_length.size()) return field::other;
    for (std::size_t i = first_of_length[name.size()];
         i < known.size() && known[i].name.size() == name.size(); ++i)
        if (same_header_name(known[i].name, name)) return known[i].is;
    return field::other;
}

std::string_view message_head::first(field of) const noexcept
{
    const auto at = std::ranges::find(kinds, of);
    return at == kinds.end() ? std::string_view()
                             : lines[static_cast<std::size_t>(at - kinds.begin())].value;
}

bool message_head::has(field of) const noexcept
{
    return std::ranges::find(kinds, of) != kinds.end();
}

bool message_head::is_hop(std::string_view name) const noexcept
{
    bool found = false;
    for (std::size_t i = 0; i < lines.size() && names_hops; ++i)
        if (kinds[i] == field::connection)
            each_element(lines[i].value, [&](std::string_view word) {
                found = found || same_header_name(word, name);
            });
    return found;
}

int read_head(std::string_view bytes, request_head& into)
{
    line_reader from{bytes};
    auto        line = from.next();
    // One empty line may stand before a request (RFC 9112 section 2.2).
    if (line && line->empty() && !from.broken) line = from.next();
    if (!line) return need_more;
    if (from.broken) return bad;
    if (const int status = read_request_line(*line, into); status != ready) return status;
    if (const int status = take_lines(from, bytes.size(), into); status != ready) return status;
    if (const int status = take_framing(into); status != ready) return status;
    if (const int status = take_host(into); status != ready) return status;
    return take_expect(into);
}

int read_head(std::string_view bytes, std::string_view method, response_head& into)
{
    line_reader from{bytes};
    const auto  line = from.next();
    if (!line) return need_more;
    if (from.broken) return bad;
    if (const int status = read_status_line(*line, into); status != ready) return status;
    if (const int status = take_lines(from, bytes.size(), into); status != ready) return status;
    if (const int status = take_framing(into); status != ready) return status;
    if (into.status < 200 || into.status == 204 || into.status == 304 || method == "HEAD")
        into.body.by = body_plan::kind::none;
    else if (into.body.by == body_plan::kind::none) into.body.by = body_plan::kind::until_close;
    if (into.body.by == body_plan::kind::until_close) into.keep_alive = false;
    return ready;
}

}  // namespace proxy
