// SPDX-License-Identifier: BSL-1.0
#pragma once

// One connection of a client: its requests one after the other, each with an exchange with an
// upstream if nobody answers it before. session.cpp reads and ends, answering.cpp decides and
// writes, exchange.cpp is the upstream's side. States are explicit; a read or a write allocates
// nothing.

#include "body_reader.hpp"
#include "head.hpp"
#include "lane.hpp"
#include "link.hpp"
#include "rewrite.hpp"

#include "weir/extract/client.hpp"
#include "weir/extract/request.hpp"
#include "weir/http/answer.hpp"
#include "weir/http/visit.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace proxy {

/// What a listening socket is for.
struct purpose {
    std::string addr        = {};     ///< The `addr` of its server.
    bool        status_page = false;  ///< It shows the figures and nothing else.
};

/// Not thread-safe: all of it is on its lane's thread, but for the callback of a shared store,
/// which only posts. Handlers, its link and a pending question keep it alive.
class session final : public session_hook,
                      public link_user,
                      public std::enable_shared_from_this<session> {
public:
    session(lane& on, const purpose& what_for, tcp_socket&& socket, const weir::peer& remote);
    ~session();

    void start();

    /// Called at each tick.
    void look_at_clock(steady_time now);

    /// Ends now if it is idle, else with the exchange under way.
    void stop();

    /// Ends now.
    void cut();

private:
    enum class phase : std::uint8_t {
        preface,     // the header of the PROXY protocol
        handshake,   // TLS
        head,        // of a request, or idle until it begins
        filters,     // a shared store is asked
        connecting,  // to an origin
        exchange,    // request and response are under way
        answering,   // with a response of our own
        lingering,   // so that the client can read before the connection is reset
        closed,
    };
    using step = void (session::*)();
    using told = void (session::*)(std::optional<weir::http::answer>);

    // session.cpp
    void start_tls();
    void note_fingerprint();
    void read_client();
    void read_some(std::size_t count, const error_code& failed);
    void read_preface();
    void read_request();
    void refuse_head(int status);
    void finish();
    void next_request();
    void end();
    void linger();
    void abandon();
    void close();

    // answering.cpp
    void begin();
    void ask(const filter_chain& who, told then);
    void arrived(std::optional<weir::http::answer> made);
    void onward(std::optional<weir::http::answer> made);
    void respond(int status, fields own, std::string body);
    void fail(int status);
    void show_status();
    void serve_kept();
    void send(std::string_view head, std::string_view data, std::string_view tail, step then);
    void send_rest();

    // exchange.cpp
    void go_upstream();
    void try_next();
    void connect(std::shared_ptr<origin> to);
    void connected(const error_code& failed) override;
    void send_head();
    void pump_request();
    void sent(const error_code& failed) override;
    void received(const error_code& failed) override;
    void upstream_ended(bool orderly, bool unsent = false);
    void upstream_failed(int status);
    void read_response();
    void begin_response();
    void pump_response();
    void response_sent();
    void note_content(std::string_view piece, std::size_t& compact);
    void end_response();
    void broken_off();
    void keep_response();
    void drop_link();

    std::string_view                  take_body();
    bool                              may_retry(bool unsent) const noexcept;
    std::string_view                  fingerprint() const;
    response_context                  context(fields added) const;
    std::vector<weir::refusal_header> quota_fields() const;
    void                              count_permits();
    void                              leave();
    void                              tell(int status);
    void                              allow(weir::duration patience);
    void                              compact() noexcept;
    tcp_socket& bottom() noexcept { return tls_ ? tls_->next_layer() : socket_; }
    template <class Handler>
    void read_from_client(asio::mutable_buffer into, Handler&& done);

    lane&                               lane_;
    const purpose&                      what_for_;
    tcp_socket                          socket_;
    std::unique_ptr<tls_stream>         tls_;
    std::shared_ptr<asio::ssl::context> tls_context_;  // it has to outlive the stream
    std::string                         ja4_;          // its fingerprint, if the server reads them
    weir::peer                          remote_;
    bool                                peer_trusted_ = false;

    phase       phase_    = phase::head;
    steady_time deadline_ = steady_time::max();
    bool        reading_ = false, writing_ = false, keep_ = true;

    // What came from the client: a head from begin_ to body_at_ and what follows to in_end_.
    std::size_t             most_head_, capacity_;
    std::unique_ptr<char[]> in_;
    std::size_t             begin_ = 0, body_at_ = 0, in_end_ = 0;

    // The request.
    std::shared_ptr<const site>      site_;
    const server_site*               server_ = nullptr;
    const location*                  place_  = nullptr;
    request_head                     request_;
    body_reader                      request_body_;
    std::optional<weir::request>     view_;
    weir::client                     client_;
    std::optional<weir::http::visit> visit_;
    weir::http::passage              passage_;
    bool                             asked_   = false;  // whether there is anything in it
    std::int64_t                     permits_ = 0;
    std::shared_ptr<session>         asking_;  // itself, while a store is asked
    steady_time                      began_   = {};
    std::uint64_t                    content_ = 0;

    // The exchange.
    std::shared_ptr<link> link_;
    response_head         response_;
    body_reader           response_body_;
    body_way              way_   = body_way::as_it_is;
    std::size_t           tried_ = 0;
    bool        response_begun_ = false, body_sent_ = false, retried_ = false, use_cache_ = false;
    std::string up_;   // the request's head for the upstream
    std::string key_;  // in the cache
    std::shared_ptr<cached_response>       tee_;
    std::shared_ptr<const cached_response> kept_;

    // What goes to the client.
    std::string                       out_, page_;
    std::array<asio::const_buffer, 3> left_ = {};
    step                              then_ = nullptr;
};

}  // namespace proxy
