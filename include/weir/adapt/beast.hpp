// SPDX-License-Identifier: BSL-1.0
#pragma once

// Boost.Beast: `view` shows a request to extractors, `refuse` makes the response to one that was
// refused. Headers only, 1.74 or later; your project finds Boost as it does today.
// Beast leaves reading to you, so one trap is yours: a request that is refused before its body was
// read must not be kept alive. Hand `refuse` the parser instead of the message and it sees to that.

#include <concepts>
#include <string>
#include <string_view>

#include "weir/decision.hpp"
#include "weir/extract/address.hpp"
#include "weir/extract/request.hpp"
#include "weir/http/refusal.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>

namespace weir {

/// The response that `refuse` makes.
using beast_refusal = boost::beast::http::response<boost::beast::http::string_body>;

/// A parser of requests, whole or in part.
template <class Parser>
concept beast_request_parser = requires(const Parser& parser) {
    { parser.is_done() } -> std::convertible_to<bool>;
    { parser.get().method_string() };
};

/// Who is at the other end: what `socket.remote_endpoint()` says. The IPv4-mapped addresses of a
/// socket that listens on both families become IPv4; a scope id is dropped.
[[nodiscard]] inline peer peer_of(const boost::asio::ip::tcp::endpoint& remote) noexcept;

/// What extractors read of a request, lines of one name in the order of the wire. Borrows the
/// header; allocates nothing. For a Unix socket hand in `peer::unix_socket()`.
template <class Fields>
[[nodiscard]] request view(const boost::beast::http::header<true, Fields>& from,
                           const peer&                                     remote);
template <class Fields>
[[nodiscard]] request view(const boost::beast::http::header<true, Fields>& from,
                           const boost::asio::ip::tcp::endpoint&           remote);

/// The response that refuses `from`: status, fields and body of the refusal, Content-Length, and
/// no body for a HEAD. Write it as it is: `prepare_payload` would tell a HEAD a length of 0.
/// Keep-alive is what the request asked for. Throws std::bad_alloc.
template <class Fields>
[[nodiscard]] beast_refusal refuse(const boost::beast::http::header<true, Fields>& from,
                                   const decision& refused, const refusal_options& options = {});

/// As above, and not kept alive if a part of the body is still unread: those bytes would be taken
/// for the next request. Close after `Connection: close`, once the client has had time to read it.
template <beast_request_parser Parser>
[[nodiscard]] beast_refusal refuse(const Parser& from, const decision& refused,
                                   const refusal_options& options = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Beast's string_view has been three types; all of them are these two words.
template <class Text>
std::string_view standard(const Text& text) noexcept
{
    return {text.data(), text.size()};
}

/// equal_range and not operator[], which shows the first line only.
struct beast_lines {
    template <class Fields>
    void operator()(const boost::beast::http::header<true, Fields>& from, std::string_view name,
                    const line_sink& found) const
    {
        auto [line, end] = from.equal_range({name.data(), name.size()});
        for (; line != end; ++line) found(standard(line->value()));
    }
};

}  // namespace detail

inline peer peer_of(const boost::asio::ip::tcp::endpoint& remote) noexcept
{
    const auto at = remote.address();
    return at.is_v4() ? address::from_v4(at.to_v4().to_bytes())
                      : address::from_v6(at.to_v6().to_bytes());
}

template <class Fields>
request view(const boost::beast::http::header<true, Fields>& from, const peer& remote)
{
    return request(from,
                   {.peer   = remote,
                    .method = detail::standard(from.method_string()),
                    .target = detail::standard(from.target()),
                    .lines  = line_fidelity::in_order},
                   detail::beast_lines{});
}

template <class Fields>
request view(const boost::beast::http::header<true, Fields>& from,
             const boost::asio::ip::tcp::endpoint&           remote)
{
    return view(from, peer_of(remote));
}

template <class Fields>
beast_refusal refuse(const boost::beast::http::header<true, Fields>& from, const decision& refused,
                     const refusal_options& options)
{
    namespace http = boost::beast::http;
    const refusal answer(refused, options);
    beast_refusal response(static_cast<http::status>(answer.status()), from.version());
    for (const auto& [name, value] : answer.headers())
        response.set({name.data(), name.size()}, value);
    response.body() = answer.body_for(detail::standard(from.method_string()));
    response.content_length(answer.body().size());

    // What http::request::keep_alive asks, which a bare header does not have.
    http::token_list words(from[http::field::connection]);
    response.keep_alive(from.version() > 10 ? !words.exists("close") : words.exists("keep-alive"));
    return response;
}

template <beast_request_parser Parser>
beast_refusal refuse(const Parser& from, const decision& refused, const refusal_options& options)
{
    auto response = refuse(from.get(), refused, options);
    if (!from.is_done()) response.keep_alive(false);
    return response;
}

}  // namespace weir
