// SPDX-License-Identifier: BSL-1.0
#pragma once

// The head of an HTTP/1 message, read strictly: what two readers could understand differently is
// refused (RFC 9112 section 11.2), not repaired. A lenient parser repairs it: it joins folded lines
// and takes a lone LF for the end of a line, and the next server may not.

#include "weir/extract/request.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace proxy {

/// The fields that a proxy itself reads or writes; all others pass through.
enum class field : std::uint8_t {
    other,
    authorization,
    cache_control,
    connection,
    content_length,
    content_range,
    date,
    expect,
    forwarded,
    hop,  ///< Keep-Alive, Proxy-Connection, Proxy-Authorization, TE, Upgrade …: for one hop only.
    host,
    range,
    set_cookie,
    trailer,
    transfer_encoding,
    vary,
    via,
    x_forwarded_for,
    x_forwarded_proto,
    x_real_ip,
};

[[nodiscard]] field field_named(std::string_view name) noexcept;

/// How the end of a body is known (RFC 9112 section 6.3).
struct body_plan {
    enum class kind : std::uint8_t { none, length, chunked, until_close };
    body_plan::kind by     = kind::none;
    std::uint64_t   length = 0;
};

/// What both kinds of message have. Everything is borrowed from the bytes that were read; the
/// vectors keep their room from one message to the next.
struct message_head {
    std::size_t bytes = 0;  ///< Of the head, with the empty line at its end.
    int         minor = 1;  ///< HTTP/1.minor
    body_plan   body  = {};

    /// Whether the sender will take another message on this connection.
    bool keep_alive = true;

    /// Connection names other fields, which are for this hop as well.
    bool names_hops = false;

    std::vector<weir::header_line> lines = {};
    std::vector<field>             kinds = {};  ///< Of each line.

    [[nodiscard]] std::string_view first(field of) const noexcept;
    [[nodiscard]] bool             has(field of) const noexcept;

    /// Whether a Connection field names this one.
    [[nodiscard]] bool is_hop(std::string_view name) const noexcept;
};

struct request_head : message_head {
    std::string_view method    = {};
    std::string_view target    = {};     ///< Path and query; of an absolute target, these of it.
    std::string_view authority = {};     ///< Of an absolute target; else Host.
    bool             expects   = false;  ///< 100-continue
};

struct response_head : message_head {
    int              status = 0;
    std::string_view reason = {};
};

/// 0: more is needed. 200: it was read. Else the status that answers it: 400, 417, 501, 505.
[[nodiscard]] int read_head(std::string_view bytes, request_head& into);

/// The same for an answer to `method`; anything but 0 and 200 is an upstream's fault.
[[nodiscard]] int read_head(std::string_view bytes, std::string_view method, response_head& into);

/// Calls `visit` with each element of a comma-separated list, without its blanks.
template <class Visit>
void each_element(std::string_view list, Visit&& visit);

[[nodiscard]] bool is_token(std::string_view text) noexcept;

// ---------------------------------------------------------------------------------------------

[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) noexcept
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

template <class Visit>
void each_element(std::string_view list, Visit&& visit)
{
    while (!list.empty()) {
        const auto comma = list.find(',');
        if (const auto element = trimmed(list.substr(0, comma)); !element.empty()) visit(element);
        list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
    }
}

}  // namespace proxy
