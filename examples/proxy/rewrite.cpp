// SPDX-License-Identifier: BSL-1.0

#include "rewrite.hpp"

#include <algorithm>

#include <boost/beast/http/status.hpp>

namespace proxy {

namespace {

void add(std::string& to, std::string_view name, std::string_view value)
{
    to.append(name).append(": ").append(value).append("\r\n");
}

void add_framing(std::string& to, const body_plan& body)
{
    if (body.by == body_plan::kind::length) add(to, "Content-Length", std::to_string(body.length));
    else if (body.by == body_plan::kind::chunked) add(to, "Transfer-Encoding", "chunked");
}

/// What stood in X-Forwarded-For, if its writer is to be believed, and whom we heard from.
void add_forwarded_for(std::string& to, const request_head& from, const request_context& with)
{
    to.append("X-Forwarded-For: ");
    for (std::size_t i = 0; i < from.lines.size() && with.peer_trusted; ++i)
        if (from.kinds[i] == field::x_forwarded_for && !from.lines[i].value.empty())
            to.append(from.lines[i].value).append(", ");
    if (const auto& address = with.peer.address()) to.append(to_string(*address));
    else to.append("unknown");
    to.append("\r\n");
}

/// Whether a field of a request stays. Those that say who is calling are nothing but words from
/// somebody who is no proxy of ours.
bool stays(field kind, const request_context& with) noexcept
{
    switch (kind) {
    case field::connection:
    case field::content_length:
    case field::hop:
    case field::host:
    case field::transfer_encoding:
    case field::x_forwarded_for:
        return false;
    case field::forwarded:
    case field::x_forwarded_proto:
    case field::x_real_ip:
        return with.peer_trusted;
    default:
        return true;
    }
}

bool is_among(fields added, std::string_view name) noexcept
{
    return std::ranges::any_of(added, [&](const weir::refusal_header& one) {
        return weir::same_header_name(one.name, name);
    });
}

bool stays(field kind) noexcept
{
    return kind != field::connection && kind != field::content_length && kind != field::hop &&
           kind != field::transfer_encoding;
}

void add_end(std::string& to, const response_context& with)
{
    for (const auto& [name, value] : with.added) add(to, name, value);
    if (!with.keep_alive) to.append("Connection: close\r\n");
    else if (with.minor == 0) to.append("Connection: keep-alive\r\n");
    to.append("\r\n");
}

void add_status_line(std::string& to, int status, std::string_view reason)
{
    to.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(reason).append("\r\n");
}

}  // namespace

std::string_view reason_of(int status) noexcept
{
    const auto text = boost::beast::http::obsolete_reason(
        boost::beast::http::int_to_status(static_cast<unsigned>(status)));
    return {text.data(), text.size()};
}

void write_request(std::string& to, const request_head& from, const request_context& with)
{
    to.append(from.method).append(" ").append(from.target).append(" HTTP/1.1\r\n");
    add(to, "Host", from.authority);
    bool proto = false;
    for (std::size_t i = 0; i < from.lines.size(); ++i) {
        const auto& [name, value] = from.lines[i];
        if (!stays(from.kinds[i], with) || (from.names_hops && from.is_hop(name)) ||
            (!with.peer_trusted && !with.ja4_header.empty() &&
             weir::same_header_name(name, with.ja4_header)))
            continue;
        proto = proto || from.kinds[i] == field::x_forwarded_proto;
        add(to, name, value);
    }
    add_forwarded_for(to, from, with);
    if (!proto) add(to, "X-Forwarded-Proto", with.secure ? "https" : "http");
    if (with.via) to.append("Via: 1.").append(std::to_string(from.minor)).append(" weir-proxy\r\n");
    add_framing(to, from.body);
    to.append("\r\n");
}

void write_response(std::string& to, const response_head& from, const response_context& with)
{
    add_status_line(to, from.status, from.reason);
    bool dated = false;
    for (std::size_t i = 0; i < from.lines.size(); ++i) {
        const auto& [name, value] = from.lines[i];
        const auto kind           = from.kinds[i];
        // The length of what a HEAD or a 304 does not send is told all the same.
        const bool told_length = kind == field::content_length &&
                                 from.body.by == body_plan::kind::none && from.status >= 200 &&
                                 from.status != 204;
        if ((!stays(kind) && !told_length) || (from.names_hops && from.is_hop(name)) ||
            (!with.added.empty() && is_among(with.added, name)))
            continue;
        dated = dated || kind == field::date;
        add(to, name, value);
    }
    if (from.status < 200) {
        to.append("\r\n");
        return;
    }
    if (with.way == body_way::as_it_is) add_framing(to, from.body);
    else if (with.way == body_way::in_chunks) to.append("Transfer-Encoding: chunked\r\n");
    if (!dated) add(to, "Date", with.date);
    if (with.via) to.append("Via: 1.").append(std::to_string(from.minor)).append(" weir-proxy\r\n");
    add_end(to, with);
}

void write_kept(std::string& to, const response_head& from)
{
    add_status_line(to, from.status, from.reason);
    for (std::size_t i = 0; i < from.lines.size(); ++i) {
        const auto& [name, value] = from.lines[i];
        if (stays(from.kinds[i]) && !(from.names_hops && from.is_hop(name)) &&
            !weir::same_header_name(name, "Age") && from.kinds[i] != field::trailer)
            add(to, name, value);
    }
}

void write_rest_of_kept(std::string& to, std::size_t length, std::int64_t age,
                        const response_context& with)
{
    add(to, "Content-Length", std::to_string(length));
    add(to, "Age", std::to_string(age));
    if (with.via) to.append("Via: 1.1 weir-proxy\r\n");
    add_end(to, with);
}

void write_own(std::string& to, int status, fields own, std::optional<std::size_t> length,
               const response_context& with)
{
    add_status_line(to, status, reason_of(status));
    for (const auto& [name, value] : own)
        if (!is_among(with.added, name)) add(to, name, value);
    if (length) add(to, "Content-Length", std::to_string(*length));
    add(to, "Date", with.date);
    add_end(to, with);
}

}  // namespace proxy
