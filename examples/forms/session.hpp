// SPDX-License-Identifier: BSL-1.0
#pragma once

// One connection: reads a request, lets a route answer it, and again. Every step has a deadline,
// and everything that is read has a size.

#include "message.hpp"
#include "service.hpp"

#include "weir/extract/request.hpp"
#include "weir/inflight.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>

namespace forms {

class session;

using connection_socket = boost::asio::basic_stream_socket<
    boost::asio::generic::stream_protocol, boost::asio::io_context::executor_type>;

/// The sessions of one thread, and what they share.
struct sessions {
    std::unordered_set<session*> open     = {};
    bool                         stopping = false;
    std::string                  date     = {};  ///< For the Date field; renewed every second.
};

/// Lives on one thread. It owns its socket and its place among the connections.
class session {
public:
    session(service& with, sessions& among, connection_socket&& socket, const weir::peer& remote,
            weir::permit&& place);
    ~session() { among_.open.erase(this); }
    session(const session&)            = delete;
    session& operator=(const session&) = delete;

    /// Ends with the connection.
    boost::asio::awaitable<void> run();

    /// Ends the step under way if its time is over.
    void look_at_clock(std::chrono::steady_clock::time_point now);

    /// Ends the connection if no request has begun; else it ends after its response.
    void stop();

    /// Ends the step under way, whatever it is.
    void cut();

private:
    using parser   = http::request_parser<http::string_body>;
    using duration = std::chrono::steady_clock::duration;

    template <class Result>
    using awaitable = boost::asio::awaitable<Result>;

    awaitable<bool>                      begins(duration patience);
    awaitable<bool>                      fill();
    awaitable<std::optional<response>>   read_request();
    awaitable<boost::system::error_code> read_and_parse(bool to_the_end);
    awaitable<bool>                      invite_body();
    awaitable<response>                  answered();
    awaitable<bool>                      write(response& made, bool keep);
    awaitable<void>                      drain();

    boost::system::error_code parse(bool to_the_end);
    [[nodiscard]] response    parse_failure(const boost::system::error_code& why) const;
    void                      allow(duration patience);

    service&                              with_;
    sessions&                             among_;
    connection_socket                     socket_;
    weir::peer                            remote_;
    weir::permit                          place_;
    boost::beast::flat_buffer             buffer_;
    std::optional<parser>                 parser_;
    std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
    bool                                  idle_     = false;
    bool                                  overdue_  = false;
};

}  // namespace forms
