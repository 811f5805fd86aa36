// SPDX-License-Identifier: BSL-1.0

#include "session.hpp"

#include "weir/extract/proxy_protocol.hpp"
#if WEIR_PROXY_JA4
#include "weir/adapt/openssl_hello.hpp"
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace proxy {

namespace {

constexpr auto body_room   = std::size_t{16'384};
constexpr auto linger_time = std::chrono::milliseconds(900);  // with the clock's 100, a second
constexpr auto never       = steady_time::max();

}  // namespace

session::session(lane& on, const purpose& what_for, tcp_socket&& socket, const weir::peer& remote)
    : lane_(on), what_for_(what_for), socket_(std::move(socket)), remote_(remote),
      most_head_(on.current->chosen.basic.max_header_bytes), capacity_(most_head_ + body_room),
      in_(new char[capacity_])
{
    lane_.open.push_back(*this);
    lane_.figures.connections.add(1);
}

session::~session()
{
    leave();
    lane_.figures.connections.add(-1);
}

void session::start()
{
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    if (lane_.stopping) return close();
    site_         = lane_.current;
    server_       = site_->at(what_for_.addr);
    peer_trusted_ = site_->trusts(remote_);
    allow(site_->chosen.basic.header_timeout);
    if (what_for_.status_page || server_ == nullptr) return read_client();

    tls_context_ = server_->tls;
    if (!server_->chosen.proxy_protocol) return start_tls();
    if (!peer_trusted_) return close();  // whoever is not ours does not say who is calling
    phase_ = phase::preface;
    read_preface();
}

// ------------------------------------------------------------------------------------ reading

/// Never a byte more than the header has for certain: what follows may be TLS.
void session::read_preface()
{
    const auto reading = weir::read_proxy_header({in_.get(), in_end_});
    if (reading.state == weir::proxy_state::rejected) return close();
    if (reading.state == weir::proxy_state::need_more) {
        socket_.async_read_some(
            asio::buffer(in_.get() + in_end_, std::min(reading.wanted, capacity_) - in_end_),
            [self = shared_from_this()](const error_code& failed, std::size_t count) {
                if (failed || self->phase_ != phase::preface) return self->close();
                self->in_end_ += count;
                self->read_preface();
            });
        return;
    }
    remote_       = reading.header.peer_behind(remote_);
    peer_trusted_ = site_->trusts(remote_);
    in_end_       = 0;
    start_tls();
}

void session::start_tls()
{
    phase_ = phase::head;
    if (!tls_context_) return read_client();
    const auto& times = site_->chosen.basic;
    allow(std::min(times.handshake_timeout, times.header_timeout));
    phase_ = phase::handshake;
    tls_   = std::make_unique<tls_stream>(std::move(socket_), *tls_context_);
    tls_->async_handshake(tls_stream::server,
                          [self = shared_from_this()](const error_code& failed) {
                              if (failed || self->phase_ != phase::handshake) return self->close();
                              self->note_fingerprint();
                              self->phase_ = phase::head;
                              self->allow(self->site_->chosen.basic.header_timeout);
                              self->read_client();
                          });
}

void session::note_fingerprint()
{
#if WEIR_PROXY_JA4
    ja4_ = weir::ja4_of(tls_->native_handle()).bytes();
#endif
}

template <class Handler>
void session::read_from_client(asio::mutable_buffer into, Handler&& done)
{
    if (tls_) tls_->async_read_some(into, std::forward<Handler>(done));
    else socket_.async_read_some(into, std::forward<Handler>(done));
}

/// One read at a time. Also when nothing more is wanted, so that a client that goes is noticed.
void session::read_client()
{
    if (reading_ || in_end_ == capacity_ || phase_ == phase::closed) return;
    reading_ = true;
    read_from_client(asio::buffer(in_.get() + in_end_, capacity_ - in_end_),
                     [self = shared_from_this()](const error_code& failed, std::size_t count) {
                         self->reading_ = false;
                         self->read_some(count, failed);
                     });
}

void session::read_some(std::size_t count, const error_code& failed)
{
    if (phase_ == phase::closed) return;
    if (failed) return phase_ == phase::lingering ? close() : abandon();
    const bool idle = in_end_ == begin_;
    in_end_ += count;
    switch (phase_) {
    case phase::head:
        if (idle && !what_for_.status_page) allow(lane_.current->chosen.basic.header_timeout);
        compact();
        return read_request();
    case phase::exchange:
        if (!request_body_.done()) {
            allow(site_->chosen.basic.body_timeout);
            pump_request();
        }
        return;
    case phase::lingering:
        in_end_ = 0;
        return read_client();
    default:
        return;  // it is kept for later
    }
}

/// To the front: only while nothing is being read behind it.
void session::compact() noexcept
{
    if (begin_ > 0) std::memmove(in_.get(), in_.get() + begin_, in_end_ - begin_);
    in_end_ -= std::exchange(begin_, 0);
}

void session::read_request()
{
    if (phase_ != phase::head) return;
    const std::string_view bytes(in_.get() + begin_, in_end_ - begin_);
    const int              status = read_head(bytes, request_);
    if (status == 0 && bytes.size() < most_head_) return read_client();
    if (status == 0 || (status == 200 && request_.bytes > most_head_)) return refuse_head(431);
    if (status != 200) return refuse_head(status);
    body_at_      = begin_ + request_.bytes;
    request_body_ = body_reader(request_.body);
    keep_         = request_.keep_alive && !lane_.stopping;
    begin();
}

/// What cannot be read as one request for certain ends the connection.
void session::refuse_head(int status)
{
    request_      = {};
    request_body_ = body_reader({.by = body_plan::kind::until_close});  // never done
    body_at_      = in_end_;
    site_         = lane_.current;
    place_        = nullptr;
    began_        = std::chrono::steady_clock::now();
    fail(status);
}

// ------------------------------------------------------------------------------------- ending

void session::finish()
{
    tell(response_.status);
    kept_.reset();
    tee_.reset();
    if (!keep_ || lane_.stopping) return end();
    next_request();
}

void session::next_request()
{
    phase_            = phase::head;
    begin_            = body_at_;
    place_            = nullptr;
    const auto& times = site_->chosen.basic;
    if (in_end_ == begin_) {
        if (!reading_) begin_ = in_end_ = 0;
        allow(times.idle_timeout);
        site_.reset();  // an idle connection holds no configuration
        return read_client();
    }
    allow(times.header_timeout);
    if (!reading_) compact();
    // By way of the loop, or a row of small requests would be a deep recursion.
    asio::post(lane_.context, [self = shared_from_this()] { self->read_request(); });
}

void session::end()
{
    if (tls_) {
        phase_ = phase::lingering;
        allow(linger_time);
        tls_->async_shutdown([self = shared_from_this()](const error_code&) { self->close(); });
        return;
    }
    if (request_body_.done() && in_end_ == body_at_) return close();
    linger();
}

/// A socket that is closed with bytes unread resets the connection, and the client would see that
/// instead of the response.
void session::linger()
{
    phase_ = phase::lingering;
    allow(linger_time);
    error_code ignored;
    socket_.shutdown(tcp_socket::shutdown_send, ignored);
    if (!reading_) in_end_ = 0;
    read_client();
}

/// The client has gone, or must go.
void session::abandon()
{
    if (phase_ >= phase::filters && phase_ <= phase::answering) tell(499);
    drop_link();
    if (!asking_) leave();
    close();
}

void session::close()
{
    phase_    = phase::closed;
    deadline_ = never;
    error_code ignored;
    bottom().close(ignored);
}

void session::tell(int status)
{
    if (site_ == nullptr || !site_->log || what_for_.status_page) return;
    const auto took = std::chrono::steady_clock::now() - began_;
    lane_.log.tell({.method   = request_.method.empty() ? "-" : request_.method,
                    .location = place_ == nullptr ? "-" : std::string_view(place_->chosen.name),
                    .status   = status,
                    .bytes    = content_,
                    .micros   = std::chrono::duration_cast<std::chrono::microseconds>(took).count(),
                    .client   = site_->chosen.basic.access_log_client ? &client_ : nullptr},
                   lane_.time);
}

void session::count_permits()
{
    const auto held = static_cast<std::int64_t>(passage_.places());
    lane_.figures.permits.add(held - std::exchange(permits_, held));
}

/// Gives back all that the exchange held. Before the last piece of a response goes out, not after:
/// a client that has all of it may ask again at once and finds its place free.
void session::leave()
{
    if (!std::exchange(asked_, false)) return;
    passage_.leave();
    passage_.quota() = {};
    lane_.figures.permits.add(-std::exchange(permits_, 0));
}

// -------------------------------------------------------------------------------------- clock

void session::allow(weir::duration patience) { deadline_ = lane_.now + patience; }

void session::look_at_clock(steady_time now)
{
    if (now < deadline_) return;
    const auto self = shared_from_this();
    deadline_       = never;
    if (writing_ && phase_ != phase::lingering) return abandon();
    switch (phase_) {
    case phase::head:
        return in_end_ == begin_ || what_for_.status_page ? abandon() : refuse_head(408);
    case phase::connecting:
        return connected(asio::error::timed_out);
    case phase::exchange:
        if (response_begun_) return broken_off();
        return request_body_.done() || link_->is_sending() ? upstream_failed(504) : fail(408);
    case phase::closed:
    case phase::filters:
        return;
    default:
        return close();
    }
}

void session::stop()
{
    const auto self = shared_from_this();
    keep_           = false;
    if (phase_ == phase::head && in_end_ == begin_) abandon();
}

void session::cut()
{
    const auto self = shared_from_this();
    if (phase_ != phase::closed) abandon();
}

}  // namespace proxy
