// SPDX-License-Identifier: BSL-1.0
#pragma once

// A bad network between a store and its server, in the test's own process: a TCP port before the
// server's Unix socket, where bytes are passed, delayed, swallowed or cut off.

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace faults {

/// Thread-safe. Each switch has happened when the call returns.
class proxy {
public:
    using clock = std::chrono::steady_clock;

    /// Before the server whose socket is in `folder`.
    explicit proxy(const std::string& folder);
    ~proxy();
    proxy(const proxy&)            = delete;
    proxy& operator=(const proxy&) = delete;

    [[nodiscard]] std::string conninfo() const
    {
        return "host=127.0.0.1 port=" + std::to_string(port_) +
               " user=postgres dbname=postgres sslmode=disable ";
    }

    /// All that comes goes on at once, on connections old and new: how it begins.
    void pass() { be({}); }
    void delay(std::chrono::milliseconds by) { be({.delay = by}); }

    /// Swallows what goes to the server, or what comes from it, or both. Nobody is told.
    void drop(bool asks, bool answers) { be({.drops_asks = asks, .drops_answers = answers}); }

    /// Closes each connection once so many bytes more have come back over it.
    void cut_after(std::size_t bytes) { be({.answers = bytes}); }

    /// Who connects is thrown out.
    void refuse() { be({.refuses = true}); }

    /// A connection on which `marker` is asked for is silent from there on.
    void mute(std::string marker) { be({.marker = std::move(marker)}); }

    /// Those that are there end with an RST.
    void reset();

    /// Half-open: the server's ends are closed, and the clients are not told.
    void abandon();

    /// Keeps what is sent to the server from here on.
    void                      record();
    [[nodiscard]] std::string recorded();

    [[nodiscard]] std::vector<clock::time_point> accepted();
    [[nodiscard]] std::size_t                    connections();

private:
    static constexpr auto endless = std::numeric_limits<std::size_t>::max();

    struct manner {
        std::chrono::milliseconds delay         = {};
        bool                      drops_asks    = false;
        bool                      drops_answers = false;
        std::size_t               answers       = endless;
        bool                      refuses       = false;
        std::string               marker        = {};
    };
    struct chunk {
        clock::time_point due;
        std::string       bytes;
    };
    struct side {
        int               socket = -1;
        bool              ended  = false;  // its peer has, and hears so once all is delivered
        std::deque<chunk> queue  = {};     // to be written there
    };
    struct link {
        side        client, server;
        std::size_t answers = endless;  // that may still go by
        bool        muted   = false;
    };

    void                      on_thread(std::function<void()> deed);
    void                      be(manner next);
    void                      work();
    std::chrono::milliseconds next_due() const;
    void                      accept_one();
    bool                      go_on(link& one, short client, short server);
    bool                      take(link& one, side& from, side& to);
    bool                      swallows(const link& one, bool asks) const;
    static bool               write(side& to);
    static void               close(link& one, bool hard);

    int                                     listener_, port_ = 0;
    int                                     bell_[2] = {-1, -1};
    std::mutex                              mutex_;
    std::vector<std::packaged_task<void()>> deeds_;
    bool                                    stopping_ = false;  // the rest is the thread's
    manner                                  manner_;
    std::string                             folder_;
    std::vector<link>                       links_;
    std::vector<clock::time_point>          accepted_;
    bool                                    records_ = false;
    std::string                             recorded_;
    std::thread                             thread_;
};

// ---------------------------------------------------------------------------------------------

inline proxy::proxy(const std::string& folder)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), folder_(folder)
{
    sockaddr_in here{};
    here.sin_family      = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size       = sizeof here;
    auto*     name       = reinterpret_cast<sockaddr*>(&here);
    if (::bind(listener_, name, size) != 0 || ::listen(listener_, 128) != 0 ||
        ::getsockname(listener_, name, &size) != 0 || ::pipe2(bell_, O_CLOEXEC | O_NONBLOCK) != 0)
        throw std::runtime_error("no port for a proxy");
    port_   = ntohs(here.sin_port);
    thread_ = std::thread([this] { work(); });
}

inline proxy::~proxy()
{
    on_thread([this] { stopping_ = true; });
    thread_.join();
    for (auto& one : links_) close(one, false);
    for (const int end : {listener_, bell_[0], bell_[1]}) ::close(end);
}

inline void proxy::on_thread(std::function<void()> deed)
{
    std::packaged_task<void()> task(std::move(deed));
    auto                       done = task.get_future();
    {
        const std::lock_guard turn(mutex_);
        deeds_.push_back(std::move(task));
    }
    [[maybe_unused]] const auto rung = ::write(bell_[1], "", 1);
    done.get();
}

inline void proxy::be(manner next)
{
    on_thread([&] {
        manner_ = std::move(next);
        for (auto& one : links_) one.answers = manner_.answers;
    });
}

inline void proxy::reset()
{
    on_thread([&] {
        for (auto& one : links_) close(one, true);
        links_.clear();
    });
}

inline void proxy::abandon()
{
    on_thread([&] {
        for (auto& one : links_) {
            ::close(std::exchange(one.server.socket, -1));
            one.muted = true;
        }
    });
}

inline void proxy::record()
{
    on_thread([&] { records_ = true; });
}

inline std::string proxy::recorded()
{
    std::string found;
    on_thread([&] { found = recorded_; });
    return found;
}

inline std::vector<proxy::clock::time_point> proxy::accepted()
{
    std::vector<clock::time_point> found;
    on_thread([&] { found = accepted_; });
    return found;
}

inline std::size_t proxy::connections()
{
    std::size_t found = 0;
    on_thread([&] { found = links_.size(); });
    return found;
}

inline void proxy::work()
{
    std::vector<pollfd> ready;
    while (!stopping_) {
        ready = {{.fd = bell_[0], .events = POLLIN, .revents = 0},
                 {.fd = listener_, .events = POLLIN, .revents = 0}};
        for (const auto& one : links_)
            for (const auto* end : {&one.client, &one.server}) {
                const bool late   = !end->queue.empty() && end->queue.front().due <= clock::now();
                const auto events = static_cast<short>(POLLIN | (late ? POLLOUT : 0));
                ready.push_back({.fd = end->socket, .events = events, .revents = 0});
            }
        ::poll(ready.data(), ready.size(), static_cast<int>(next_due().count()));

        std::size_t at = 2;
        std::erase_if(links_, [&](link& one) {
            const auto client = ready[at++].revents, server = ready[at++].revents;
            return !go_on(one, client, server);
        });
        if (ready[1].revents != 0) accept_one();

        std::array<char, 64> bytes;
        while (::read(bell_[0], bytes.data(), bytes.size()) > 0) {}
        std::vector<std::packaged_task<void()>> deeds;
        {
            const std::lock_guard turn(mutex_);
            deeds.swap(deeds_);
        }
        for (auto& deed : deeds) deed();
    }
}

/// Until the first chunk that waits may go on.
inline std::chrono::milliseconds proxy::next_due() const
{
    auto first = clock::now() + std::chrono::seconds(10);
    for (const auto& one : links_)
        for (const auto* end : {&one.client, &one.server})
            if (!end->queue.empty() && end->queue.front().due > clock::now())
                first = std::min(first, end->queue.front().due);
    return std::max(std::chrono::ceil<std::chrono::milliseconds>(first - clock::now()),
                    std::chrono::milliseconds(0));
}

/// A server that does not listen throws its client out; one whose queue is full is silent.
inline void proxy::accept_one()
{
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    accepted_.push_back(clock::now());
    link        one{.client = {.socket = client}, .server = {}, .answers = manner_.answers};
    sockaddr_un there{};
    there.sun_family = AF_UNIX;
    std::strncpy(there.sun_path, (folder_ + "/.s.PGSQL.5432").c_str(), sizeof there.sun_path - 1);
    const int  server = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool found  = ::connect(server, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0;
    one.muted         = !found && errno == EAGAIN;
    one.server.socket = server;
    if (manner_.refuses || (!found && !one.muted)) return close(one, true);
    links_.push_back(std::move(one));
}

/// False once it is closed.
inline bool proxy::go_on(link& one, short client, short server)
{
    const bool alive = (client == 0 || take(one, one.client, one.server)) &&
                       (server == 0 || take(one, one.server, one.client)) && write(one.client) &&
                       write(one.server);
    if (!alive) close(one, false);
    return alive;
}

inline bool proxy::swallows(const link& one, bool asks) const
{
    return one.muted || (asks ? manner_.drops_asks : manner_.drops_answers);
}

/// What has come from one side goes into the queue of the other one.
inline bool proxy::take(link& one, side& from, side& to)
{
    const bool               asks = &from == &one.client;
    std::array<char, 16'384> bytes;
    const auto               got = ::read(from.socket, bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) {  // a client that leaves is heard; a server's goodbye may be swallowed as well
        ::close(std::exchange(from.socket, -1));
        if (asks) return false;
        to.ended = !swallows(one, asks);
        return true;
    }
    std::string part(bytes.data(), static_cast<std::size_t>(got));
    if (asks && records_) recorded_ += part;
    if (asks && !manner_.marker.empty()) one.muted |= part.find(manner_.marker) != part.npos;
    if (swallows(one, asks)) return true;
    if (!asks && one.answers != endless) {
        part.resize(std::min(part.size(), one.answers));
        one.answers -= part.size();
        to.ended = one.answers == 0;
    }
    if (!part.empty()) to.queue.push_back({clock::now() + manner_.delay, std::move(part)});
    return true;
}

/// What is due. False if nothing will ever be written there again.
inline bool proxy::write(side& to)
{
    while (!to.queue.empty() && to.queue.front().due <= clock::now()) {
        auto&      bytes = to.queue.front().bytes;
        const auto sent  = ::send(to.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        bytes.erase(0, static_cast<std::size_t>(sent));
        if (!bytes.empty()) return true;
        to.queue.pop_front();
    }
    return !(to.ended && to.queue.empty());
}

inline void proxy::close(link& one, bool hard)
{
    const linger now{.l_onoff = 1, .l_linger = 0};
    if (hard && one.client.socket >= 0)
        ::setsockopt(one.client.socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    for (auto* end : {&one.client, &one.server})
        if (end->socket >= 0) ::close(std::exchange(end->socket, -1));
}

}  // namespace faults
