// SPDX-License-Identifier: BSL-1.0

// A reverse proxy that shows what an operator's limits do; README.md says how to run it.

#include "demo.hpp"
#include "server.hpp"
#include "settings.hpp"
#include "site.hpp"
#include "stores.hpp"

#include "weir/config/document.hpp"
#include "weir/config/limits.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <sys/resource.h>

namespace {

/// Signals are for `wait_for`, in this thread and in all that it starts.
sigset_t block_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, each);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return signals;
}

void allow_descriptors()
{
    rlimit allowed{};
    ::getrlimit(RLIMIT_NOFILE, &allowed);
    allowed.rlim_cur = allowed.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &allowed);
}

void tell(std::string_view kind, const std::string& line)
{
    std::fprintf(stderr, "%.*s weir-proxy: %s\n", static_cast<int>(kind.size()), kind.data(),
                 line.c_str());
}

/// A configuration and what to keep of one that is refused: the reasons, told.
struct loaded {
    proxy::settings                    chosen = {};
    std::shared_ptr<const proxy::site> made   = {};  // null: something is wrong, and was told
};

/// Tells warnings, those that were told before not again, and errors.
bool tell_findings(weir::config::document& from, weir::config::told_once& told)
{
    from.warn_of_strangers();
    for (const auto& each : told.fresh(from.warnings())) tell("WARN", to_string(each));
    for (const auto& each : from.errors()) tell("ERROR", to_string(each));
    return from.ok();
}

/// What is run: a file, or the demonstration.
struct source {
    std::string file = {};
    std::string demo = {};  // its text

    [[nodiscard]] weir::config::document read() const
    {
        return file.empty() ? weir::config::document::parse(demo, "demonstration")
                            : weir::config::document::read(file);
    }
};

/// `lasting` is made with the first configuration.
loaded load(const source& where, std::unique_ptr<proxy::state>& lasting)
{
    auto       from = where.read();
    loaded     made{.chosen = proxy::read_settings(from)};
    const auto sizes = weir::config::read_counters(from.root().child("basic"));
    if (!lasting) lasting = std::make_unique<proxy::state>(sizes);
    lasting->stores->open(from, made.chosen.stores, lasting->counters);
    auto site = std::make_shared<const proxy::site>(from, made.chosen, *lasting);
    if (tell_findings(from, lasting->told)) made.made = std::move(site);
    return made;
}

void warn_of_restart(const proxy::site& before, const proxy::site& after)
{
    const auto waits = [](std::string_view what) {
        tell("WARN", std::string(what) + " waits for a restart");
    };
    if (before.chosen.basic.threads != after.chosen.basic.threads) waits("another basic.threads");
    if (before.chosen.basic.status != after.chosen.basic.status) waits("another basic.status");
    for (const auto& each : after.servers)
        if (before.at(each.chosen.addr) == nullptr) waits("listening at " + each.chosen.addr);
    for (const auto& each : before.servers)
        if (after.at(each.chosen.addr) == nullptr) waits("closing " + each.chosen.addr);
}

/// The new configuration, or the old one if something is wrong with it.
void reload(const source& where, std::unique_ptr<proxy::state>& lasting, proxy::server& running,
            std::shared_ptr<const proxy::site>& first, std::shared_ptr<const proxy::site>& now)
{
    auto next = load(where, lasting);
    if (!next.made) return tell("ERROR", "the configuration stays as it was");
    warn_of_restart(*first, *next.made);
    now = next.made;
    running.use(now);
    tell("INFO", "reloaded the configuration");
}

/// Until SIGINT or SIGTERM.
void wait_for(const sigset_t& signals, proxy::state& lasting, const auto& on_hangup)
{
    const timespec second{.tv_sec = 1, .tv_nsec = 0};
    for (;;) {
        const int came = ::sigtimedwait(&signals, nullptr, &second);
        if (came == SIGHUP) on_hangup();
        if (came == SIGINT || came == SIGTERM) return;
        lasting.flush_shadows();
    }
}

int check(const proxy::site& made)
{
    for (const auto& each : made.plugins)
        std::printf("plugins.%s  %s\n", each.name.c_str(), each.about.c_str());
    std::printf("the configuration is good\n");
    return 0;
}

int run(const source& where, bool only_check)
{
    const auto signals = block_signals();
    allow_descriptors();
    std::unique_ptr<proxy::state> lasting;
    auto                          first = load(where, lasting).made;
    if (!first) return 2;
    if (only_check) return check(*first);

    proxy::server running(*lasting, first);
    running.start();
    for (const auto& each : running.addresses()) std::printf("listening %s\n", each.c_str());
    if (where.file.empty()) std::printf("%s", proxy::demo_text().c_str());
    std::fflush(stdout);  // whoever started us through a pipe waits for the addresses

    auto now = first;
    wait_for(signals, *lasting, [&] { reload(where, lasting, running, first, now); });
    running.stop();
    lasting->flush_shadows();
    return 0;
}

int run_demonstration()
{
    block_signals();  // before a thread starts
    const proxy::demo_upstream upstream;
    return run({.demo = proxy::demo_configuration(upstream.port())}, false);
}

}  // namespace

int main(int count, char** words)
{
    const bool only_check = count == 3 && std::string_view(words[1]) == "-t";
    if (count > 3 || (count == 3 && !only_check) || (count == 2 && words[1][0] == '-')) {
        std::fprintf(stderr, "usage: weir-proxy [-t] CONFIG.toml, or none for a demonstration\n");
        return 2;
    }
    try {
        if (count == 1) return run_demonstration();
        return run({.file = words[count - 1]}, only_check);
    } catch (const std::exception& failed) {
        tell("ERROR", failed.what());
        return 1;
    }
}
