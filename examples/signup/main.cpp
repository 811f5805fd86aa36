// SPDX-License-Identifier: BSL-1.0

// A public sign-up form that refuses nobody: what has a cap is the mail, not the applicant.
// README.md says how to run it.

#include "mail/worker.hpp"
#include "routes.hpp"
#include "service.hpp"
#include "settings.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/stat.h>

namespace {

/// Ctrl-C and SIGTERM are for `wait_for`, in this thread and in all that it starts.
sigset_t block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return signals;
}

/// Binds, and returns the address as a URL has it. httplib's own choice is SO_REUSEPORT, with which
/// a second server on a port starts silently, and a queue of five connections.
std::string bind(httplib::Server& server, const weir::listen_address& at)
{
    int listening = -1;
    server.set_socket_options([&](auto socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        listening = socket;
    });
    const auto host = weir::to_string(at.at);
    const int  port = at.port == 0                         ? server.bind_to_any_port(host)
                      : server.bind_to_port(host, at.port) ? at.port
                                                           : -1;
    if (port <= 0 || ::listen(listening, 1024) != 0)
        throw std::runtime_error("cannot listen on " + host + "; is the port in use?");
    const bool v6 = host.find(':') != host.npos;
    return (v6 ? "[" + host + "]" : host) + ':' + std::to_string(port);
}

void set_up(httplib::Server& server, const signup::settings& chosen)
{
    server.new_task_queue = [threads = chosen.threads] { return new httplib::ThreadPool(threads); };
    server.set_keep_alive_timeout(1);  // a connection that waits holds a thread
    server.set_read_timeout(10);
    server.set_write_timeout(10);
}

void tell(const signup::settings& chosen, const std::string& address)
{
    std::printf("listening on http://%s\n", address.c_str());
    if (chosen.token_is_made) std::printf("admin token: %s\n", chosen.admin_token.c_str());
    std::fflush(stdout);  // whoever started us through a pipe waits for the address
    if (chosen.secret_is_made)
        std::fprintf(stderr, "weir-signup: SIGNUP_SECRET is not set; pages and links of this "
                             "process are of no use to others, or after its end\n");
}

/// Once an hour places of days ago are forgotten.
void wait_for(const sigset_t& signals, signup::service& with)
{
    const timespec hour{.tv_sec = 3600, .tv_nsec = 0};
    while (::sigtimedwait(&signals, nullptr, &hour) < 0) {
        if (errno == EINTR) continue;
        try {
            with.kept.with([](signup::records& on) { return on.sweep(), true; });
        } catch (const std::exception& failed) {
            std::fprintf(stderr, "weir-signup: %s\n", failed.what());
        }
    }
}

void run(signup::settings chosen)
{
    const auto signals = block_signals();
    ::mkdir(chosen.folder.c_str(), 0700);  // if it is there, or cannot be, what is in it tells

    httplib::Server server;
    set_up(server, chosen);
    const auto address = bind(server, chosen.listen);
    if (chosen.url.empty()) chosen.url = "http://" + address;

    signup::service                              with(chosen);
    std::vector<std::unique_ptr<signup::worker>> workers;
    for (unsigned n = 0; n < chosen.workers; ++n)
        workers.push_back(std::make_unique<signup::worker>(*with.database, with.chosen, with.link));
    with.on_queued = [&] {
        if (!workers.empty()) workers.front()->wake();
    };
    signup::add_routes(server, with);

    std::thread serving([&] { server.listen_after_bind(); });
    tell(chosen, address);
    wait_for(signals, with);
    while (!server.is_running()) std::this_thread::yield();  // before it runs, stop() does nothing
    server.stop();
    serving.join();
    for (const auto& each : workers) each->finish();
}

}  // namespace

int main()
{
    weir::environment from;
    const auto        chosen = signup::read_settings(from);
    if (!from.complaint().empty()) {
        std::fprintf(stderr, "weir-signup: %s\n", from.complaint().c_str());
        return 2;
    }
    for (const auto& name : from.strangers("SIGNUP_"))
        std::fprintf(stderr, "weir-signup: %s is no setting of this program\n", name.c_str());
    try {
        run(chosen);
        return 0;
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-signup: %s\n", failed.what());
        return 1;
    }
}
