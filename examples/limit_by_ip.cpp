// SPDX-License-Identifier: BSL-1.0

// A server that answers "hello" so many times per client and window, and 429 after that:
//
//     weir-limit-by-ip --listen 127.0.0.1:8080 --limit 60 --window 60s --trusted-hops 0
//
// The first of the two halves is the limit; the second reads the flags.

#include "weir/adapt/httplib.hpp"
#include "weir/config/duration.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/weir.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <concepts>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

struct settings {
    std::string    host         = "127.0.0.1";
    int            port         = 8080;  ///< 0: any that is free.
    std::uint64_t  limit        = 60;
    weir::duration window       = std::chrono::seconds(60);
    int            trusted_hops = 0;
};

settings read_flags(int count, char** values);
int      bound_port(httplib::Server& server, const settings& chosen);
sigset_t block_signals();
void     serve_until(const sigset_t& signals, httplib::Server& server);

void run(const settings& chosen)
{
    weir::memory_store counters({.max_keys = 100'000});
    weir::limiter      per_ip(
        "site.ip", weir::sliding_window{.limit = chosen.limit, .window = chosen.window}, counters);
    weir::client_ip source({.trusted_hops = chosen.trusted_hops});

    httplib::Server server;
    server.set_pre_routing_handler([&](const auto& request, auto& response) {
        const auto decision = per_ip.admit(source(weir::view(request)));
        if (decision) return httplib::Server::HandlerResponse::Unhandled;
        weir::refuse(request, response, decision);
        return httplib::Server::HandlerResponse::Handled;
    });

    const auto hello = [](const httplib::Request&, httplib::Response& response) {
        response.set_content("hello\n", "text/plain");
    };
    server.Get(".*", hello).Post(".*", hello);

    // Before the address is told: whoever reads it may send a signal at once.
    const auto signals = block_signals();

    const bool v6   = chosen.host.find(':') != std::string::npos;
    const auto host = v6 ? "[" + chosen.host + "]" : chosen.host;
    const auto url  = "http://" + host + ":" + std::to_string(bound_port(server, chosen));
    std::printf("listening on %s\ntry: curl -i %s/\n", url.c_str(), url.c_str());
    std::fflush(stdout);  // whoever started us through a pipe waits for the address
    serve_until(signals, server);
}

// ---------------------------------------------------------------------------------------------

constexpr const char* usage =
    "usage: weir-limit-by-ip [--listen 127.0.0.1:8080] [--limit 60] [--window 60s]\n"
    "                        [--trusted-hops 0]\n"
    "Port 0 is any that is free. A window is 1h30m, 90s or 500ms.\n";

[[noreturn]] void reject(std::string_view flag, std::string_view value, std::string_view allowed)
{
    throw std::invalid_argument(std::string(flag) + ": \"" + std::string(value) +
                                "\" is not allowed; allowed is " + std::string(allowed));
}

template <std::integral Number>
Number number(std::string_view flag, std::string_view text, Number most, std::string_view allowed)
{
    Number     value = 0;
    const auto end   = text.data() + text.size();
    const auto read  = std::from_chars(text.data(), end, value);
    const bool whole = !text.empty() && text.front() != '-' && read.ptr == end;
    if (!whole || read.ec != std::errc{} || value > most) reject(flag, text, allowed);
    return value;
}

weir::duration window_from(std::string_view flag, std::string_view text)
{
    const auto window = weir::config::parse_duration(text);
    if (!window || *window == weir::duration::zero())
        reject(flag, text, std::string(weir::config::duration_grammar) + ", over 0");
    return *window;
}

void listen_at(settings& chosen, std::string_view flag, std::string_view text)
{
    constexpr auto allowed = "HOST:PORT or [IPV6]:PORT with a port of 0 to 65535";
    const auto     colon   = text.rfind(':');
    if (colon == text.npos || colon == 0) reject(flag, text, allowed);
    chosen.port = number(flag, text.substr(colon + 1), 65535, allowed);

    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    else if (host.find(':') != host.npos) reject(flag, text, allowed);
    if (host.empty()) reject(flag, text, allowed);
    chosen.host = host;
}

settings read_flags(int count, char** values)
{
    settings chosen;
    for (int i = 1; i < count; i += 2) {
        const std::string_view flag = values[i];
        if (i + 1 == count) reject(flag, "", "a value after each flag; see --help");
        const std::string_view value = values[i + 1];
        if (flag == "--listen") listen_at(chosen, flag, value);
        else if (flag == "--limit")
            chosen.limit = number(flag, value, UINT64_MAX, "a whole number");
        else if (flag == "--window") chosen.window = window_from(flag, value);
        else if (flag == "--trusted-hops")
            chosen.trusted_hops = number(flag, value, weir::client_ip::most_hops,
                                         "0 to " + std::to_string(weir::client_ip::most_hops));
        else reject("flags", flag, "--listen, --limit, --window, --trusted-hops and --help");
    }
    return chosen;
}

int bound_port(httplib::Server& server, const settings& chosen)
{
    // httplib's own choice is SO_REUSEPORT, with which a second server on a port starts silently.
    server.set_socket_options([](auto socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    if (chosen.port == 0) {
        if (const int port = server.bind_to_any_port(chosen.host); port > 0) return port;
    } else if (server.bind_to_port(chosen.host, chosen.port)) {
        return chosen.port;
    }
    throw std::runtime_error("--listen: cannot listen on " + chosen.host + " port " +
                             std::to_string(chosen.port) + "; is the port in use?");
}

/// Keeps Ctrl-C and SIGTERM for `serve_until`, in this thread and in all that it starts.
sigset_t block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

void serve_until(const sigset_t& signals, httplib::Server& server)
{
    std::atomic<bool> over = false;
    std::thread       stopper([&] {
        int caught = 0;
        sigwait(&signals, &caught);
        // Before it runs, stop() does nothing.
        while (!over && !server.is_running()) std::this_thread::yield();
        server.stop();
    });
    server.listen_after_bind();
    over = true;
    ::kill(::getpid(), SIGTERM);  // for the thread above, if the end did not come from a signal
    stopper.join();
}

}  // namespace

int main(int count, char** values)
{
    if (count == 2 && std::string_view(values[1]) == "--help") {
        std::fputs(usage, stdout);
        return 0;
    }
    try {
        run(read_flags(count, values));
        return 0;
    } catch (const std::invalid_argument& wrong) {
        std::fprintf(stderr, "weir-limit-by-ip: %s\n", wrong.what());
        return 2;
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-limit-by-ip: %s\n", failed.what());
        return 1;
    }
}
