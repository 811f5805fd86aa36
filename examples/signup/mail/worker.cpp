// SPDX-License-Identifier: BSL-1.0

#include "mail/worker.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

namespace signup {

namespace {

using std::chrono::seconds;

/// Few: those behind the first wait for it with their leases running.
constexpr std::size_t most_at_once = 8;

/// After a try that came to nothing: one lease, doubled each time, an hour at most.
weir::duration wait_after(std::int64_t tries, weir::duration lease)
{
    const auto doubled = lease * (std::int64_t{1} << std::clamp<std::int64_t>(tries - 1, 0, 10));
    return std::min<weir::duration>(doubled,
                                    std::max<weir::duration>(lease, std::chrono::hours(1)));
}

}  // namespace

worker::worker(storage& on, const settings& chosen, const links& with)
    : on_(on), chosen_(chosen), with_(with), out_(make_transport(chosen)),
      thread_([this] { run(); })
{
}

void worker::wake()
{
    {
        const std::lock_guard lock(mutex_);
        woken_ = true;
    }
    more_.notify_one();
}

void worker::finish()
{
    over_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
}

/// Looks once a second unasked: what waits comes due by itself.
bool worker::wait()
{
    std::unique_lock lock(mutex_);
    more_.wait_for(lock, seconds(1), [this] { return woken_; });
    woken_ = false;
    return !over_;
}

void worker::run()
{
    while (wait()) {
        try {
            look();
        } catch (const std::exception& failed) {
            kept_.reset();  // to connect again the next time
            tell(failed.what());
        }
    }
    try {
        if (kept_) report();
    } catch (const std::exception& failed) {
        tell(failed.what());  // those go once more, and say that they may come twice
    }
}

void worker::look()
{
    if (!kept_) kept_ = std::make_unique<records>(on_);
    report();
    while (!over_ && send_some()) {}
    if (trouble_.empty()) return;
    trouble_.clear();
    std::fprintf(stderr, "weir-signup: the worker's database works again\n");
}

/// False when nothing is due.
bool worker::send_some()
{
    const auto taken = kept_->claim(chosen_.caps, most_at_once, chosen_.lease, chosen_.link_life);
    for (const auto& one : taken) {
        if (over_) kept_->put_back(one, weir::duration::zero(), false);
        else if (kept_->begin(one, chosen_.lease)) send(one);
    }
    return !taken.empty();
}

void worker::send(const mail& one)
{
    const auto became = out_->send(write_message(one, with_, chosen_.mail_from, weir::now()));
    if (became.how == passage::end::gone) {
        sent_.push_back(one);
        report();
        return;
    }
    std::fprintf(stderr, "weir-signup: mail %s: %s\n", one.id.c_str(), became.why.c_str());
    settle(one, became);
}

void worker::settle(const mail& one, const passage& became)
{
    if (became.how == passage::end::never) return kept_->give_up(one, became.why);
    kept_->put_back(one, wait_after(one.tries, chosen_.lease), became.how == passage::end::unknown);
}

/// While the database is away what was sent is kept in mind, so that it goes once all the same.
void worker::report()
{
    while (!sent_.empty()) {
        kept_->sent(sent_.back());
        sent_.pop_back();
    }
}

void worker::tell(const std::string& trouble)
{
    if (!trouble_.empty()) return;
    trouble_ = trouble;
    std::fprintf(stderr, "weir-signup: the worker's database fails: %s\n", trouble.c_str());
}

}  // namespace signup
