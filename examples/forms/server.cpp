// SPDX-License-Identifier: BSL-1.0

#include "server.hpp"

#include "session.hpp"

#include "weir/extract/client.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace forms {

namespace asio = boost::asio;
using boost::system::error_code;
using protocol = asio::generic::stream_protocol;
using std::chrono::steady_clock;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto tick      = std::chrono::milliseconds(100);

constexpr int most_pending = 4096;  // that nobody has accepted yet; the system may allow fewer

/// One thread and its connections.
struct lane {
    asio::io_context context{1};  // one thread runs it; others only post
    sessions         among;
    std::thread      thread;
};

std::vector<std::unique_ptr<lane>> make_lanes(unsigned count)
{
    std::vector<std::unique_ptr<lane>> lanes(count);
    for (auto& each : lanes) each = std::make_unique<lane>();
    return lanes;
}

weir::peer peer_of(const protocol::endpoint& remote)
{
    const auto* at = remote.data();
    if (at->sa_family == AF_INET) {
        std::array<std::uint8_t, 4> bytes{};
        std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(at)->sin_addr, 4);
        return weir::address::from_v4(bytes);
    }
    if (at->sa_family == AF_INET6) {
        std::array<std::uint8_t, 16> bytes{};
        std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(at)->sin6_addr, 16);
        return weir::address::from_v6(bytes);
    }
    return weir::peer::unix_socket();
}

protocol::endpoint endpoint_of(const settings& chosen)
{
    if (!chosen.unix_socket.empty())
        return asio::local::stream_protocol::endpoint(chosen.unix_socket);
    const auto bytes = chosen.listen.at.bytes();
    if (chosen.listen.at.is_v4())
        return asio::ip::tcp::endpoint(
            asio::ip::address_v4({bytes[0], bytes[1], bytes[2], bytes[3]}), chosen.listen.port);
    return asio::ip::tcp::endpoint(asio::ip::address_v6(bytes), chosen.listen.port);
}

/// Where it really listens: the port may have been the system's choice.
std::string url_of(const settings& chosen, const protocol::endpoint& bound)
{
    if (!chosen.unix_socket.empty()) return "unix:" + chosen.unix_socket;
    asio::ip::tcp::endpoint at;
    std::memcpy(at.data(), bound.data(), bound.size());
    at.resize(bound.size());
    std::ostringstream url;
    url << "http://" << at;
    return url.str();
}

/// IMF-fixdate (RFC 9110, section 5.6.7).
std::string http_date()
{
    const auto now = std::time(nullptr);
    std::tm    utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 40> text{};
    std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    return text.data();
}

asio::awaitable<void> serve(service& with, lane& on, connection_socket socket, weir::peer remote,
                            weir::permit place)
{
    try {
        session one(with, on.among, std::move(socket), remote, std::move(place));
        co_await one.run();
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-forms: a connection ended: %s\n", failed.what());
    }
}

/// The clock of a thread. It is also its work: the thread ends when this does and the last session
/// has ended.
asio::awaitable<void> keep_time(lane& on, seconds patience)
{
    asio::steady_timer      timer(on.context);
    steady_clock::time_point cut_at = steady_clock::time_point::max();
    while (!on.among.stopping || !on.among.open.empty()) {
        on.among.date = http_date();
        timer.expires_after(tick);
        co_await timer.async_wait(as_result);

        const auto now = steady_clock::now();
        if (on.among.stopping && cut_at == steady_clock::time_point::max()) cut_at = now + patience;
        for (auto* each : on.among.open) now < cut_at ? each->look_at_clock(now) : each->cut();
    }
}

/// To a client that finds every place taken. A socket this fresh has room for so little.
void turn_away(connection_socket& socket)
{
    constexpr std::string_view full = "HTTP/1.1 503 Service Unavailable\r\n"
                                      "Content-Length: 0\r\nConnection: close\r\n\r\n";
    error_code ignored;
    socket.write_some(asio::buffer(full.data(), full.size()), ignored);
}

}  // namespace

struct server::parts {
    explicit parts(service& from);

    void                  listen();
    asio::awaitable<void> accept();

    service&                           with;
    weir::inflight                     places;
    std::vector<std::unique_ptr<lane>> lanes;
    std::size_t                        next = 0;  // the lane of the next connection

    asio::basic_socket_acceptor<protocol, asio::io_context::executor_type> acceptor;
};

server::parts::parts(service& from)
    : with(from), places("connections", {.per_key  = from.chosen.max_connections_per_peer,
                                         .in_total = from.chosen.max_connections}),
      lanes(make_lanes(from.chosen.threads)), acceptor(lanes[0]->context)
{
    listen();
}

void server::parts::listen()
{
    const auto at = endpoint_of(with.chosen);
    // What an earlier process left; a socket that somebody listens at is taken over as well.
    if (!with.chosen.unix_socket.empty()) ::unlink(with.chosen.unix_socket.c_str());
    acceptor.open(at.protocol());
    acceptor.set_option(asio::socket_base::reuse_address(true));
    acceptor.bind(at);
    acceptor.listen(most_pending);
}

asio::awaitable<void> server::parts::accept()
{
    while (acceptor.is_open()) {
        auto&              on = *lanes[next++ % lanes.size()];
        protocol::endpoint remote;
        auto [failed, socket] = co_await acceptor.async_accept(on.context, remote, as_result);
        if (failed == asio::error::operation_aborted) co_return;
        if (failed) {  // no descriptor is free: wait until some connection has ended
            asio::steady_timer pause(lanes[0]->context, tick);
            co_await pause.async_wait(as_result);
            continue;
        }
        const auto peer  = peer_of(remote);
        const auto who   = peer.address() ? weir::client(*peer.address(), with.chosen.client.prefix)
                                          : weir::client();
        auto       place = places.enter(who);
        if (!place) {
            turn_away(socket);
            continue;
        }
        error_code ignored;
        if (peer.address()) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
        asio::co_spawn(on.context, serve(with, on, std::move(socket), peer, std::move(place)),
                       asio::detached);
    }
}

server::server(service& with) try : parts_(std::make_unique<parts>(with)) {
    address_ = url_of(with.chosen, parts_->acceptor.local_endpoint());
} catch (const boost::system::system_error& failed) {
    throw std::runtime_error(std::string("cannot listen at FORMS_LISTEN: ") + failed.what());
}

server::~server() = default;

void server::start()
{
    auto& all = *parts_;
    for (auto& one : all.lanes)
        asio::co_spawn(one->context, keep_time(*one, all.with.chosen.shutdown_timeout),
                       asio::detached);
    asio::co_spawn(all.lanes[0]->context, all.accept(), asio::detached);
    for (auto& one : all.lanes) one->thread = std::thread([&one] { one->context.run(); });
}

void server::stop()
{
    auto& all = *parts_;
    asio::post(all.lanes[0]->context, [&all] { all.acceptor.close(); });
    for (auto& one : all.lanes)
        asio::post(one->context, [&among = one->among] {
            among.stopping = true;
            for (auto* each : among.open) each->stop();
        });
    for (auto& one : all.lanes) one->thread.join();
    if (!all.with.chosen.unix_socket.empty()) ::unlink(all.with.chosen.unix_socket.c_str());
}

}  // namespace forms
