// SPDX-License-Identifier: BSL-1.0

#include "server.hpp"

#include "session.hpp"

#include "weir/adapt/beast.hpp"
#include "weir/config/environment.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

namespace proxy {

namespace {

using std::chrono::steady_clock;

constexpr auto tick         = std::chrono::milliseconds(100);
constexpr auto idle_longest = seconds(30);  // of a link; upstreams close theirs at 60 and more
constexpr int  most_pending = 4096;         // that nobody accepted yet; the system may allow fewer

tcp::endpoint endpoint_of(const std::string& addr)
{
    const auto at = weir::parse_listen_address(addr);
    if (!at) throw std::runtime_error("cannot listen at " + addr + ": no address and port");
    const auto bytes = at->at.bytes();
    if (at->at.is_v4())
        return {asio::ip::address_v4({bytes[0], bytes[1], bytes[2], bytes[3]}), at->port};
    return {asio::ip::address_v6(bytes), at->port};
}

std::string formatted(const char* format)
{
    const auto now = std::time(nullptr);
    std::tm    utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 40> text{};
    std::strftime(text.data(), text.size(), format, &utc);
    return text.data();
}

/// One thread. Its clock is its work, too: it ends when it was told to and no session is left.
struct worker {
    explicit worker(state& of) : on(of), timer(on.context) {}

    void look_around();
    void keep_time();

    lane               on;
    asio::steady_timer timer;
    steady_time        cut_at = steady_time::max();
    std::thread        thread;
};

void worker::look_around()
{
    on.now  = steady_clock::now();
    on.date = formatted("%a, %d %b %Y %H:%M:%S GMT");
    on.time = formatted("%Y-%m-%dT%H:%M:%SZ");
    on.log.flush();
    on.idle.drop_older_than(on.stopping ? steady_time::max() : on.now - idle_longest);
    if (on.stopping && cut_at == steady_time::max())
        cut_at = on.now + on.current->chosen.basic.shutdown_timeout;
    for (auto at = on.open.begin(); at != on.open.end();) {
        auto& one = static_cast<session&>(*at++);  // it may end and leave the list
        on.now < cut_at ? one.look_at_clock(on.now) : one.cut();
    }
}

void worker::keep_time()
{
    look_around();
    if (on.stopping && on.open.empty()) return;
    timer.expires_after(tick);
    timer.async_wait([this](const error_code&) { keep_time(); });
}

struct listener {
    purpose      what_for;
    tcp_acceptor acceptor;
    std::size_t  next = 0;  // the worker of the next connection
};

}  // namespace

struct server::parts {
    parts(state& lasting, std::shared_ptr<const site> first);

    void listen(const std::string& addr, bool status_page);
    void accept(listener& at);
    bool has_room() const;
    void pause(listener& at);

    state&                                 lasting;
    std::vector<std::unique_ptr<worker>>   workers;
    std::vector<std::unique_ptr<listener>> listeners;
    asio::steady_timer                     breath;  // while no descriptor is free
};

server::parts::parts(state& of, std::shared_ptr<const site> first)
    : lasting(of), workers([&] {
          std::vector<std::unique_ptr<worker>> made;
          for (unsigned i = 0; i < first->chosen.basic.threads; ++i)
              made.push_back(std::make_unique<worker>(of));
          return made;
      }()),
      breath(workers[0]->on.context)
{
    for (auto& each : workers) {
        each->on.current = first;
        each->on.log.open(first->log);
        lasting.boards.push_back(&each->on.figures);
    }
    for (const auto& each : first->servers) listen(each.chosen.addr, false);
    if (!first->chosen.basic.status.empty()) listen(first->chosen.basic.status, true);
}

void server::parts::listen(const std::string& addr, bool status_page)
{
    const auto at   = endpoint_of(addr);
    auto       made = std::make_unique<listener>(
        listener{{addr, status_page}, tcp_acceptor(workers[0]->on.context)});
    try {
        made->acceptor.open(at.protocol());
        made->acceptor.set_option(asio::socket_base::reuse_address(true));
        made->acceptor.bind(at);
        made->acceptor.listen(most_pending);
    } catch (const boost::system::system_error& failed) {
        throw std::runtime_error("cannot listen at " + addr + ": " + failed.code().message());
    }
    listeners.push_back(std::move(made));
}

/// Each accepts at one thread and hands out in turn.
void server::parts::accept(listener& at)
{
    auto& to = *workers[at.next++ % workers.size()];
    at.acceptor.async_accept(to.on.context, [this, &at, &to](const error_code& failed,
                                                             tcp_socket        socket) {
        if (failed == asio::error::operation_aborted || !at.acceptor.is_open()) return;
        if (failed) return pause(at);
        error_code lost;
        const auto remote = socket.remote_endpoint(lost);
        if (!lost && has_room())
            asio::dispatch(to.on.context, [&at, &to, remote, socket = std::move(socket)]() mutable {
                std::make_shared<session>(to.on, at.what_for, std::move(socket),
                                          weir::peer_of(remote))
                    ->start();
            });
        accept(at);
    });
}

/// On the thread that accepts.
bool server::parts::has_room() const
{
    std::int64_t open = 0;
    for (const auto& each : workers) open += each->on.figures.connections.read();
    return open < static_cast<std::int64_t>(workers[0]->on.current->chosen.basic.max_connections);
}

void server::parts::pause(listener& at)
{
    breath.expires_after(tick);
    breath.async_wait([this, &at](const error_code& ended) {
        if (!ended) accept(at);
    });
}

server::server(state& lasting, std::shared_ptr<const site> first)
{
    lasting.cache.resize(first->chosen.basic.cache_bytes);
    parts_ = std::make_unique<parts>(lasting, first);
    for (const auto& each : parts_->listeners) {
        std::ostringstream text;
        const auto*        of = first->at(each->what_for.addr);
        text << (each->what_for.status_page ? "status" : of->chosen.name) << " http"
             << (of != nullptr && of->tls ? "s" : "") << "://" << each->acceptor.local_endpoint();
        addresses_.push_back(text.str());
    }
}

server::~server() = default;

void server::start()
{
    for (auto& each : parts_->workers) each->look_around();
    for (auto& each : parts_->listeners) parts_->accept(*each);
    for (auto& each : parts_->workers)
        each->thread = std::thread([one = each.get()] {
            one->keep_time();
            one->on.context.run();
        });
}

void server::use(std::shared_ptr<const site> next)
{
    parts_->lasting.cache.resize(next->chosen.basic.cache_bytes);
    for (auto& each : parts_->workers)
        asio::post(each->on.context, [&on = each->on, next] {
            on.current = next;
            on.log.open(next->log);
        });
}

void server::stop()
{
    auto& all = *parts_;
    asio::post(all.workers[0]->on.context, [&all] {
        for (auto& each : all.listeners) each->acceptor.close();
    });
    for (auto& each : all.workers)
        asio::post(each->on.context, [&on = each->on] {
            on.stopping = true;
            for (auto at = on.open.begin(); at != on.open.end();)
                static_cast<session&>(*at++).stop();
        });
    for (auto& each : all.workers) each->thread.join();
}

}  // namespace proxy
