// SPDX-License-Identifier: BSL-1.0

#include "session.hpp"

#include "routes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <tuple>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/write.hpp>

namespace forms {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr auto as_result   = asio::as_tuple(asio::use_awaitable);
constexpr auto read_size   = std::size_t{16'384};
constexpr auto drain_time  = std::chrono::milliseconds(900);  // with the clock's 100, a second
constexpr auto no_deadline = steady_clock::time_point::max();

/// What Beast cannot know, or lets pass: none if the request may go on.
std::optional<response> objection(const request& from)
{
    const auto codings = from.count(http::field::transfer_encoding);
    const auto coding  = from[http::field::transfer_encoding];
    if (codings > 1 || (codings == 1 && !boost::beast::iequals(coding, "chunked")))
        return failure(http::status::not_implemented, "unsupported_transfer_coding",
                       "The only transfer coding here is chunked.");
    if (from.version() == 11 && from.count(http::field::host) != 1)
        return failure(http::status::bad_request, "malformed_request", "There is not one Host.");
    if (const auto expects = from[http::field::expect];
        !expects.empty() && !boost::beast::iequals(expects, "100-continue"))
        return failure(http::status::expectation_failed, "expectation_failed",
                       "The only expectation here is 100-continue.");
    return std::nullopt;
}

}  // namespace

session::session(service& with, sessions& among, connection_socket&& socket,
                 const weir::peer& remote, weir::permit&& place)
    : with_(with), among_(among), socket_(std::move(socket)), remote_(remote),
      place_(std::move(place)), buffer_(with.chosen.max_header_bytes + read_size)
{
    among_.open.insert(this);
}

asio::awaitable<void> session::run()
{
    auto patience = with_.chosen.header_timeout;
    while (!among_.stopping && co_await begins(patience)) {
        auto made = co_await read_request();
        if (!parser_) co_return;  // the client has gone
        const bool whole = !made;
        if (whole) {
            deadline_ = no_deadline;  // what a route waits for has bounds of its own
            made      = co_await answered();
        }
        const bool keep = whole && parser_->keep_alive() && !among_.stopping;
        if (!co_await write(*made, keep)) co_return;
        if (!whole) co_await drain();
        if (!keep) co_return;
        patience = with_.chosen.idle_timeout;
    }
}

asio::awaitable<response> session::answered()
{
    try {
        co_return co_await route(with_, parser_->get(), remote_);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-forms: a request failed: %s\n", failed.what());
    }
    co_return failure(http::status::internal_server_error, "internal_error", "Something failed.");
}

/// Waits for the first bytes of a request. False when there will be none.
asio::awaitable<bool> session::begins(duration patience)
{
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(with_.chosen.max_header_bytes));
    parser_->body_limit(with_.chosen.max_body_bytes);
    if (buffer_.size() > 0) co_return true;
    allow(patience);
    idle_            = true;
    const bool begun = co_await fill();
    idle_            = false;
    co_return begun;
}

/// The whole request is then in the parser; or the response to one that is not read any further;
/// or there is no parser any more.
asio::awaitable<std::optional<response>> session::read_request()
{
    allow(with_.chosen.header_timeout);
    auto failed = parse(false);
    if (failed == http::error::need_more) failed = co_await read_and_parse(false);
    if (!failed) {
        if (auto refused = objection(parser_->get())) co_return refused;
        failed = parse(true);
    }
    if (failed == http::error::need_more) {
        allow(with_.chosen.body_timeout);
        if (co_await invite_body()) failed = co_await read_and_parse(true);
        else failed = http::error::end_of_stream;
    }
    if (!failed) co_return std::nullopt;
    if (failed == http::error::end_of_stream && !overdue_) {
        parser_.reset();
        co_return std::nullopt;
    }
    co_return parse_failure(failed);
}

/// To the end of the header or of the request, as far as it has arrived: else need_more. Most
/// requests have arrived whole, so this is no coroutine.
error_code session::parse(bool to_the_end)
{
    parser_->eager(to_the_end);
    error_code failed;
    while (!failed && !(to_the_end ? parser_->is_done() : parser_->is_header_done())) {
        if (buffer_.size() == 0) return http::error::need_more;
        buffer_.consume(parser_->put(buffer_.data(), failed));
    }
    return failed;
}

/// end_of_stream stands for all that happens to sockets.
asio::awaitable<error_code> session::read_and_parse(bool to_the_end)
{
    error_code failed = http::error::need_more;
    while (failed == http::error::need_more) {
        if (!co_await fill()) co_return http::error::end_of_stream;
        failed = parse(to_the_end);
    }
    co_return failed;
}

asio::awaitable<bool> session::fill()
{
    const auto room = std::min(read_size, buffer_.max_size() - buffer_.size());
    const auto [failed, count] = co_await socket_.async_read_some(buffer_.prepare(room), as_result);
    buffer_.commit(count);
    co_return !failed && count > 0;
}

/// Tells a client that waits for it to send the body. Its length is checked by then.
asio::awaitable<bool> session::invite_body()
{
    const auto& from = parser_->get();
    if (buffer_.size() > 0 || from.version() < 11 || from.count(http::field::expect) == 0)
        co_return true;
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto [failed, count] =
        co_await asio::async_write(socket_, asio::buffer(go_on.data(), go_on.size()), as_result);
    co_return !failed && count == go_on.size();
}

response session::parse_failure(const error_code& why) const
{
    if (overdue_)
        return failure(http::status::request_timeout, "request_timeout",
                       "The request took too long to arrive.");
    if (why == http::error::body_limit)
        return failure(http::status::payload_too_large, "request_body_too_large",
                       "The body is too large.",
                       R"("limit_bytes":)" + std::to_string(with_.chosen.max_body_bytes));
    if (why == http::error::header_limit || why == http::error::buffer_overflow)
        return failure(http::status::request_header_fields_too_large, "request_header_too_large",
                       "The header is too large.",
                       R"("limit_bytes":)" + std::to_string(with_.chosen.max_header_bytes));
    return failure(http::status::bad_request, "malformed_request", "This is not HTTP/1.1.");
}

asio::awaitable<bool> session::write(response& made, bool keep)
{
    const auto& from = parser_->get();
    made.version(from.version() == 10 ? 10 : 11);
    made.set(http::field::date, among_.date);
    made.keep_alive(keep);
    made.content_length(made.body().size());
    if (from.method() == http::verb::head) made.body().clear();

    allow(with_.chosen.write_timeout);
    const auto [failed, count] = co_await http::async_write(socket_, made, as_result);
    co_return !failed && count > 0;
}

/// Reads on for a moment: a socket that is closed with bytes unread resets the connection, and the
/// client would see that instead of the response.
asio::awaitable<void> session::drain()
{
    error_code ignored;
    socket_.shutdown(connection_socket::shutdown_send, ignored);
    allow(drain_time);
    do buffer_.consume(buffer_.size());
    while (!overdue_ && co_await fill());
}

void session::allow(duration patience)
{
    overdue_  = false;
    deadline_ = steady_clock::now() + patience;
}

void session::look_at_clock(steady_clock::time_point now)
{
    if (now < deadline_) return;
    overdue_  = true;
    deadline_ = no_deadline;
    error_code ignored;
    socket_.cancel(ignored);
}

void session::stop()
{
    error_code ignored;
    if (idle_) socket_.cancel(ignored);
}

void session::cut()
{
    error_code ignored;
    socket_.close(ignored);
}

}  // namespace forms
