// SPDX-License-Identifier: BSL-1.0
#pragma once

// cpp-httplib: `view` shows a request to extractors, `refuse` answers one that was refused.
// Needs httplib.h, 0.11.4 or later, and nothing of Weir that is not header-only.
// What differs between its versions stands where it matters; docs/servers/httplib.md has the list.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "weir/decision.hpp"
#include "weir/extract/request.hpp"
#include "weir/http/refusal.hpp"

#include <httplib.h>

namespace weir {

/// What extractors read of a request; borrows it. The peer is `remote_addr` and never a header:
/// 0.11.4 adds REMOTE_ADDR to the headers, after one that the client sent. Do not combine a
/// `client_ip` with httplib's own `set_trusted_proxies`, which rewrites `remote_addr`.
/// No allocation, except for a header name longer than a string holds inside. Constant time.
[[nodiscard]] inline request view(const httplib::Request& from);

/// Fills `response` with the refusal of `refused`, from a pre-routing handler (then return
/// `Handled`) or from a request handler. Header fields of the same names are replaced.
/// The connection is kept, unless a body was announced that nobody has read: those bytes would be
/// taken for the next request, so it is closed after the refusal.
///
/// `from` and `response` are those httplib handed to the handler: to close, or to keep a Range
/// from cutting the refusal, `from` is changed. A `set_error_handler` that replaces the body of a
/// response that has one undoes the closing; see docs/servers/httplib.md. Throws std::bad_alloc.
inline void refuse(const httplib::Request& from, httplib::Response& response,
                   const decision& refused, const refusal_options& options = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

/// 0.17 to 0.51 keep headers in an unordered_multimap, which mixes up three lines of one name.
template <class Headers>
concept loses_line_order = requires { typename Headers::hasher; };

/// equal_range and not get_header_value(name, i): 0.11.4 runs past the end for an i too large, and
/// the signature changed later.
struct httplib_lines {
    void operator()(const httplib::Request& from, std::string_view name,
                    const line_sink& found) const
    {
        auto [line, end] = from.headers.equal_range(std::string(name));
        for (; line != end; ++line) found(line->second);
    }
};

/// Whether bytes of a body are, or will be, on the connection that nobody has read. A body that
/// was read into something other than `body` counts as unread: then the connection is closed
/// without need.
inline bool body_is_pending(const httplib::Request& from)
{
    if (!from.body.empty()) return false;
    if (from.headers.count("Transfer-Encoding") != 0) return true;
    auto [line, end] = from.headers.equal_range("Content-Length");
    return std::any_of(line, end, [](const auto& field) {
        return field.second.empty() || field.second.find_first_not_of('0') != std::string::npos;
    });
}

/// Lets httplib close the connection after this response. Before 0.40 nothing but a content
/// provider that fails does that: a `Connection: close` in the response is only text.
inline void close_after(httplib::Request& from, httplib::Response& response, std::string body)
{
    // The header of the answer follows that of the request; to set it here would send it twice.
    from.headers.erase("Connection");
    from.headers.emplace("Connection", "close");

    const auto size = body.size();  // a refusal's body is never empty, and httplib asserts that
    if (from.method == "HEAD") {
        from.method = "GET";  // no provider is asked for the body of a HEAD: ask, and give nothing
        body.clear();
    }
    const auto type = response.get_header_value("Content-Type");
    response.headers.erase("Content-Type");
    response.body.clear();  // a body would be sent instead
    response.set_content_provider(
        size, type, [body = std::move(body)](std::size_t, std::size_t, httplib::DataSink& sink) {
            if (!body.empty()) sink.write(body.data(), body.size());
            return false;
        });
}

}  // namespace detail

inline request view(const httplib::Request& from)
{
    constexpr auto fidelity = detail::loses_line_order<httplib::Headers>
                                  ? line_fidelity::any_order
                                  : line_fidelity::in_order;
    return request(from,
                   {.peer   = peer::parse(from.remote_addr),
                    .method = from.method,
                    .target = from.target,
                    .lines  = fidelity},
                   detail::httplib_lines{});
}

inline void refuse(const httplib::Request& from, httplib::Response& response,
                   const decision& refused, const refusal_options& options)
{
    const refusal answer(refused, options);
    response.status = answer.status();
    for (const auto& [name, value] : answer.headers()) {
        response.headers.erase(std::string(name));  // set_header adds a second line
        response.headers.emplace(name, value);
    }

    // httplib owns the request and lends it as const; the object itself is not.
    auto& own = const_cast<httplib::Request&>(from);
    own.ranges.clear();  // 0.11.4 cuts the body of any status to the range that was asked for
    if (detail::body_is_pending(from)) detail::close_after(own, response, answer.body());
    else response.set_content(answer.body(), std::string(answer.content_type()));
}

}  // namespace weir
