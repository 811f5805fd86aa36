// SPDX-License-Identifier: BSL-1.0

#include "storage/worker.hpp"

#include <cstdio>
#include <exception>
#include <utility>

namespace forms {

// -- writer ---------------------------------------------------------------------------------------

writer::writer(storage& on, health& state)
    : on_(on.open()), state_(state), patience_(on.patience()), waiting_(patience_),
      thread_([this] { run(); })
{
}

bool writer::keep(keeping& one, done then)
{
    return waiting_.add({.kept = &one, .then = std::move(then)});
}

bool writer::mark_delivered(const std::vector<submission>& those, done then)
{
    return waiting_.add({.delivered = &those, .then = std::move(then)});
}

void writer::probe()
{
    if (!state_.good()) waiting_.add({.then = [](bool) {}});
}

void writer::finish()
{
    waiting_.close();
    if (thread_.joinable()) thread_.join();
}

void writer::run()
{
    for (auto jobs = waiting_.take(most_at_once); !jobs.empty();
         jobs      = waiting_.take(most_at_once)) {
        on_->allow_until(records::time_point::clock::now() + patience_);
        try {
            const bool kept = write(jobs);
            for (auto& each : jobs) each.then(kept);
        } catch (const storage_refused&) {
            write_apart(jobs);
        }
    }
}

/// Throws storage_refused if it is not the database that fails.
bool writer::write(const std::vector<job>& jobs)
{
    batch all;
    for (const auto& each : jobs) {
        if (each.kept != nullptr) all.kept.push_back(each.kept);
        if (each.delivered != nullptr)
            for (const auto& one : *each.delivered) all.delivered.push_back(one.seq);
    }
    try {
        on_->write(all);
        state_.works();
        return true;
    } catch (const storage_refused&) {
        throw;
    } catch (const std::exception& failed) {
        state_.fails(failed.what());
        return false;
    }
}

/// So that one which the database does not take does not take the others along.
void writer::write_apart(std::vector<job>& jobs)
{
    for (auto& each : jobs) {
        bool kept = false;
        try {
            kept = write({each});
        } catch (const storage_refused& why) {
            std::fprintf(stderr, "weir-forms: a submission was not stored: %s\n", why.what());
        }
        each.then(kept);
    }
}

// -- worker ---------------------------------------------------------------------------------------

worker::worker(storage& on, health& state)
    : on_(on.open()), state_(state), patience_(on.patience()), waiting_(patience_),
      thread_([this] { run(); })
{
}

bool worker::add(work what, done then)
{
    return waiting_.add({std::move(what), std::move(then)});
}

void worker::finish()
{
    waiting_.close();
    if (thread_.joinable()) thread_.join();
}

void worker::run()
{
    for (auto one = waiting_.take(1); !one.empty(); one = waiting_.take(1))
        one.front().then(does(one.front()));
}

bool worker::does(const job& one)
{
    on_->allow_until(records::time_point::clock::now() + patience_);
    try {
        one.what(*on_);
        state_.works();
        return true;
    } catch (const storage_refused& why) {
        std::fprintf(stderr, "weir-forms: the database refused: %s\n", why.what());
    } catch (const std::exception& failed) {
        state_.fails(failed.what());
    }
    return false;
}

}  // namespace forms
