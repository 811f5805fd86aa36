// SPDX-License-Identifier: BSL-1.0

// The upstream's side of a session. Both bodies flow at once; of each no more is held than one
// buffer, and no more is read before that is written.

#include "session.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include <boost/asio/error.hpp>

namespace proxy {

namespace {

/// To do it twice is to do it once (RFC 9110 section 9.2.2).
bool is_idempotent(std::string_view method) noexcept
{
    constexpr std::array<std::string_view, 6> all = {"GET",    "HEAD",    "PUT",
                                                     "DELETE", "OPTIONS", "TRACE"};
    return std::ranges::find(all, method) != all.end();
}

void append_chunk_size(std::string& to, std::size_t size)
{
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
    to.append(digits.data(), end).append("\r\n");
}

constexpr std::string_view line_end = "\r\n", last_chunk = "0\r\n\r\n";

}  // namespace

// -------------------------------------------------------------------------------- the request

void session::go_upstream()
{
    tried_          = 0;
    response_begun_ = body_sent_ = retried_ = false;
    way_                                    = body_way::as_it_is;
    content_                                = 0;
    up_.clear();
    write_request(up_, request_,
                  {.peer         = remote_,
                   .peer_trusted = peer_trusted_,
                   .secure       = tls_ != nullptr,
                   .via          = site_->chosen.basic.via,
                   .ja4_header   = server_->chosen.ja4_header});
    try_next();
}

void session::try_next()
{
    const auto& to = place_->to->next();
    ++tried_;
    link_ = lane_.idle.take(*to);
    if (!link_) return connect(to);
    link_->serve(shared_from_this());
    send_head();
}

void session::connect(std::shared_ptr<origin> to)
{
    phase_ = phase::connecting;
    allow(place_->to->chosen().connect_timeout);
    link_ = std::make_shared<link>(lane_.context, std::move(to));
    link_->serve(shared_from_this());
    link_->connect();
    if (request_body_.done()) read_client();
}

void session::connected(const error_code& failed)
{
    if (!failed) {
        link_->receive();
        return send_head();
    }
    link_->to()->failures.fetch_add(1, std::memory_order_relaxed);
    drop_link();
    if (tried_ < place_->to->size() && !retried_) return try_next();
    lane_.figures.failures.add(1);
    fail(failed == asio::error::timed_out ? 504 : 502);
}

/// The head and what has come of the body go out as one.
void session::send_head()
{
    phase_ = phase::exchange;
    link_->to()->requests.fetch_add(1, std::memory_order_relaxed);
    const auto piece = take_body();
    if (request_body_.bad()) return fail(400);
    body_sent_ = !piece.empty();
    allow(request_body_.done() ? place_->to->chosen().response_timeout
                               : site_->chosen.basic.body_timeout);
    switch (link_->send({asio::buffer(up_), asio::buffer(piece.data(), piece.size())})) {
    case sending::done:
        return pump_request();
    case sending::later:
        return;
    case sending::failed:
        return upstream_ended(false, true);
    }
}

std::string_view session::take_body()
{
    const char* from  = in_.get() + body_at_;
    const auto  count = request_body_.feed({from, in_end_ - body_at_});
    body_at_ += count;
    return {from, count};
}

void session::pump_request()
{
    while (!request_body_.done() && !link_->is_sending()) {
        if (body_at_ == in_end_ && !reading_) body_at_ = in_end_ = begin_ + request_.bytes;
        if (body_at_ == in_end_) return read_client();
        const auto piece = take_body();
        if (request_body_.bad()) return response_begun_ ? broken_off() : fail(400);
        body_sent_ = true;
        // An upstream that takes no more may have answered all the same: reading will tell.
        if (link_->send({asio::buffer(piece.data(), piece.size())}) == sending::failed) return;
        if (request_body_.done() && !response_begun_) allow(place_->to->chosen().response_timeout);
    }
    if (request_body_.done()) read_client();
}

void session::sent(const error_code& failed)
{
    if (!failed && phase_ == phase::exchange) pump_request();
}

// ------------------------------------------------------------------------------- the response

void session::received(const error_code& failed)
{
    if (phase_ != phase::exchange) return;
    if (failed) return upstream_ended(failed == asio::error::eof);
    if (response_begun_) pump_response();
    else read_response();
}

/// `unsent`: nothing of the request went out either.
bool session::may_retry(bool unsent) const noexcept
{
    return link_->reused() && link_->silent() && !retried_ && !body_sent_ &&
           (unsent || is_idempotent(request_.method));
}

void session::upstream_ended(bool orderly, bool unsent)
{
    if (response_begun_) {
        if (orderly && response_.body.by == body_plan::kind::until_close) return end_response();
        return broken_off();
    }
    if (!may_retry(unsent)) return upstream_failed(502);
    retried_      = true;
    const auto to = link_->to();
    drop_link();
    connect(to);
}

void session::upstream_failed(int status)
{
    link_->to()->failures.fetch_add(1, std::memory_order_relaxed);
    lane_.figures.failures.add(1);
    fail(status);
}

/// A response that has begun and cannot end as it should: the client sees it break off, too.
void session::broken_off()
{
    if (link_) link_->to()->failures.fetch_add(1, std::memory_order_relaxed);
    abandon();
}

void session::read_response()
{
    const int status = read_head(link_->bytes(), request_.method, response_);
    if (status == 0 && !link_->full()) return link_->receive();
    // 101 answers an Upgrade, which we never pass on.
    if (status != 200 || response_.status == 101) return upstream_failed(502);
    if (response_.status >= 200) return begin_response();

    out_.clear();
    write_response(out_, response_, context({}));
    link_->consume(response_.bytes);
    if (request_.minor == 0) return read_response();
    send(out_, {}, {}, &session::read_response);
}

void session::begin_response()
{
    response_begun_ = true;
    response_body_  = body_reader(response_.body);
    const auto by   = response_.body.by;
    way_ = request_.minor == 0 && by != body_plan::kind::none && by != body_plan::kind::length
               ? body_way::bare
           : by == body_plan::kind::until_close ? body_way::in_chunks
                                                : body_way::as_it_is;
    // Whether the rest of the request comes in time is not known yet.
    keep_ = keep_ && request_body_.done() && way_ != body_way::bare;
    if (use_cache_ && request_.method == "GET") keep_response();

    const auto quota = quota_fields();
    out_.clear();
    write_response(out_, response_, context(quota));
    link_->consume(response_.bytes);
    pump_response();
}

/// If it may be kept: what is read from now on is copied.
void session::keep_response()
{
    auto lasts = lifetime(response_);
    if (!lasts || response_.body.by == body_plan::kind::until_close ||
        response_.body.length > lane_.lasting.cache.most_of_one())
        return;
    for (const auto& [name, value] : response_.lines)
        if (std::int64_t age = 0; weir::same_header_name(name, "Age")) {
            std::from_chars(value.data(), value.data() + value.size(), age);
            *lasts -= seconds(std::clamp<std::int64_t>(age, 0, 31'536'000));
        }
    if (*lasts <= weir::duration::zero()) return;
    tee_        = std::make_shared<cached_response>();
    tee_->born  = weir::now();
    tee_->until = tee_->born + *lasts;
    write_kept(tee_->head, response_);
}

void session::note_content(std::string_view piece, std::size_t& kept)
{
    content_ += piece.size();
    if (tee_) {
        if (tee_->body.size() + piece.size() > lane_.lasting.cache.most_of_one()) tee_.reset();
        else tee_->body.append(piece);
    }
    if (way_ != body_way::bare) return;
    std::memmove(link_->data() + kept, piece.data(), piece.size());  // out of its chunks
    kept += piece.size();
}

void session::pump_response()
{
    std::size_t kept  = 0;
    const auto  bytes = link_->bytes();
    const auto  count =
        response_body_.feed(bytes, [&](std::string_view piece) { note_content(piece, kept); });
    if (response_body_.bad()) return broken_off();
    if (response_body_.done()) leave();
    const auto data  = bytes.substr(0, way_ == body_way::bare ? kept : count);
    const bool chunk = way_ == body_way::in_chunks && !data.empty();
    if (chunk) append_chunk_size(out_, data.size());
    link_->consume(count);  // the bytes stay where they are until the next read
    if (out_.empty() && data.empty()) return response_sent();
    send(out_, data, chunk ? line_end : std::string_view(), &session::response_sent);
}

void session::response_sent()
{
    out_.clear();
    if (response_body_.done()) return end_response();
    allow(site_->chosen.basic.body_timeout);
    link_->receive();
}

void session::end_response()
{
    if (!response_body_.done()) {  // the upstream closed, as it had to
        response_body_.end();
        leave();
        if (way_ == body_way::in_chunks) return send(last_chunk, {}, {}, &session::end_response);
    }
    if (tee_) lane_.lasting.cache.keep(key_, std::move(tee_));
    if (response_.keep_alive && request_body_.done() && !link_->is_sending() && !lane_.stopping)
        lane_.idle.keep(std::exchange(link_, nullptr), place_->to->chosen().idle_connections,
                        lane_.now);
    drop_link();
    finish();
}

void session::drop_link()
{
    if (!link_) return;
    const auto gone = std::exchange(link_, nullptr);
    gone->close();
}

}  // namespace proxy
