// SPDX-License-Identifier: BSL-1.0

// Signing in with a code by mail, which cannot be guessed; README.md says how to run it.

#include "accounts.hpp"
#include "door.hpp"
#include "mail.hpp"
#include "routes.hpp"
#include "secret.hpp"
#include "settings.hpp"

#include "weir/extract/address.hpp"

#include <httplib.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

/// `listener` is the socket, once there is one.
void set_up(httplib::Server& server, const signin::settings& chosen, int& listener)
{
    server.new_task_queue = [&chosen] { return new httplib::ThreadPool(chosen.threads); };
    // One request a connection: an idle one has no thread, and bytes of a body that nobody has read
    // are not taken for a request.
    server.set_keep_alive_max_count(1);
    server.set_payload_max_length(16'384);
    server.set_default_headers(
        {{"Cache-Control", "no-store"},
         {"Content-Security-Policy",
          "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
         {"Referrer-Policy", "no-referrer"},
         {"X-Content-Type-Options", "nosniff"}});
    // httplib's own choice is SO_REUSEPORT, with which a second server on a port starts silently.
    server.set_socket_options([&listener](auto socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        listener = socket;
    });
    using handled = httplib::Server::HandlerResponse;
    server.set_error_handler(
        httplib::Server::HandlerWithResponse([](const auto&, httplib::Response& to) {
            if (!to.body.empty() || to.content_provider_) return handled::Unhandled;
            const auto* name = to.status == 404 ? "not_found" : "bad_request";
            to.set_content(std::string(R"({"error":")") + name + "\"}", "application/json");
            return handled::Handled;
        }));
    server.set_exception_handler([](const auto&, httplib::Response& to, std::exception_ptr) {
        std::fprintf(stderr, "weir-signin: a request failed inside\n");
        to.status = 500;
        to.set_content(R"({"error":"internal"})", "application/json");
    });
}

std::string listen_on(httplib::Server& server, const weir::listen_address& at)
{
    const auto host = to_string(at.at);
    int        port = at.port;
    if (port == 0) port = server.bind_to_any_port(host);
    else if (!server.bind_to_port(host, port)) port = -1;
    const auto shown = at.at.is_v4() ? host : "[" + host + "]";
    if (port > 0) return "http://" + shown + ":" + std::to_string(port);
    throw std::runtime_error("SIGNIN_LISTEN: cannot listen on " + shown + ":" +
                             std::to_string(at.port) + "; is the port in use?");
}

/// Ctrl-C and SIGTERM are for `serve`, in this thread and in all that it starts.
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

void serve(const sigset_t& signals, httplib::Server& server)
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

std::string secret_of(const signin::settings& chosen)
{
    if (::mkdir(chosen.folder.c_str(), 0700) != 0 && errno != EEXIST)
        throw std::invalid_argument("SIGNIN_FOLDER: cannot make " + chosen.folder + ": " +
                                    std::strerror(errno));
    if (chosen.secret) return *chosen.secret;
    std::fprintf(stderr,
                 "weir-signin: warning: SIGNIN_SECRET is not set; a random one is kept in "
                 "%s/secret, beside what it protects and unknown to other hosts\n",
                 chosen.folder.c_str());
    return signin::kept_secret(chosen.folder);
}

void run(const signin::settings& chosen)
{
    const auto             signals = block_signals();
    const auto             secret  = secret_of(chosen);
    const signin::accounts known(chosen.accounts);
    const auto             limits = signin::make_door(chosen, secret);
    signin::mail           letters(chosen, known);
    signin::routes         answers(chosen, secret, known, *limits, letters);

    httplib::Server server;
    int             listener = -1;
    set_up(server, chosen, listener);
    answers.add_to(server);
    const auto address = listen_on(server, chosen.listen);
    ::listen(listener, 512);  // httplib lets five wait, and the sixth tries again after a second
    std::printf("listening on %s\n", address.c_str());
    if (chosen.token_is_made) std::printf("admin token: %s\n", chosen.admin_token.c_str());
    std::fflush(stdout);  // whoever started us through a pipe waits for the address
    serve(signals, server);
}

}  // namespace

int main(int count, char** values)
{
    weir::environment from;
    const auto        chosen = signin::read_settings(from);
    if (!from.complaint().empty()) {
        std::fprintf(stderr, "weir-signin: %s\n", from.complaint().c_str());
        return 2;
    }
    if (count > 1) {
        const bool asked = count == 2 && std::string_view(values[1]) == "--limits";
        if (asked) std::fputs(signin::terms(chosen).c_str(), stdout);
        else std::fputs("usage: weir-signin [--limits]; settings are SIGNIN_… variables\n", stderr);
        return asked ? 0 : 2;
    }
    for (const auto& name : from.strangers("SIGNIN_"))
        std::fprintf(stderr, "weir-signin: %s is no setting of this program\n", name.c_str());
    try {
        run(chosen);
        return 0;
    } catch (const std::invalid_argument& wrong) {
        std::fprintf(stderr, "weir-signin: %s\n", wrong.what());
        return 2;
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-signin: %s\n", failed.what());
        return 1;
    }
}
