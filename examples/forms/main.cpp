// SPDX-License-Identifier: BSL-1.0

// A public form endpoint under two limits; README.md says how to run it.

#include "delivery.hpp"
#include "server.hpp"
#include "service.hpp"
#include "settings.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>

#include <sys/resource.h>

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

/// A descriptor for each connection, and some for files. Where the system does not allow it, accept
/// waits for connections to end.
void allow_descriptors(rlim_t connections)
{
    rlimit allowed{};
    ::getrlimit(RLIMIT_NOFILE, &allowed);
    allowed.rlim_cur = std::min(allowed.rlim_max, std::max(allowed.rlim_cur, connections + 64));
    ::setrlimit(RLIMIT_NOFILE, &allowed);
}

void wait_for(const sigset_t& signals, forms::service& with)
{
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    while (::sigtimedwait(&signals, nullptr, &second) < 0) with.look_around();
}

void tell(const forms::settings& chosen, const std::string& address)
{
    std::printf("listening on %s\n", address.c_str());
    if (chosen.token_is_made) std::printf("admin token: %s\n", chosen.admin_token.c_str());
    std::fflush(stdout);  // whoever started us through a pipe waits for the address
}

void run(const forms::settings& chosen)
{
    const auto signals = block_signals();
    allow_descriptors(chosen.max_connections);

    forms::service  with(chosen);
    forms::delivery deliveries(*with.database, chosen.outbox, with.keeper);
    with.on_kept = [&deliveries] { deliveries.wake(); };
    forms::server server(with);
    server.start();
    tell(chosen, server.address());
    wait_for(signals, with);

    server.stop();  // in this order: what was accepted is kept, and what was kept is delivered
    deliveries.finish();
    with.keeper.finish();
}

}  // namespace

int main()
{
    weir::environment from;
    const auto        chosen = forms::read_settings(from);
    if (!from.complaint().empty()) {
        std::fprintf(stderr, "weir-forms: %s\n", from.complaint().c_str());
        return 2;
    }
    for (const auto& name : from.strangers("FORMS_"))
        std::fprintf(stderr, "weir-forms: %s is no setting of this program\n", name.c_str());
    try {
        run(chosen);
        return 0;
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "weir-forms: %s\n", failed.what());
        return 1;
    }
}
