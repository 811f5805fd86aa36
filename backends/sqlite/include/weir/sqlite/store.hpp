// SPDX-License-Identifier: BSL-1.0
#pragma once

// Counters in a file that the processes of one host share, and that outlives them:
//
//     weir::sqlite::store counters({.path = "/var/lib/site/limits.db", .secret = secret});
//     weir::limiter       per_ip("site.ip", weir::fixed_window{.limit = 60, .window = 1min},
//     counters);
//
// docs/sqlite.md says when to use it, what survives a crash, and how fast it is.

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/invalid.hpp"
#include "weir/key.hpp"
#include "weir/policy.hpp"
#include "weir/remote/digest.hpp"
#include "weir/remote/outage.hpp"
#include "weir/remote/row.hpp"
#include "weir/sqlite/connection.hpp"
#include "weir/sqlite/spending.hpp"
#include "weir/sqlite/writer.hpp"
#include "weir/store.hpp"
#include "weir/store/enrolled.hpp"
#include "weir/time.hpp"
#include "weir/warning.hpp"

namespace weir::sqlite {

/// The system clock: what the processes of one host share. It may step back, which the policies sit
/// out. Thread-safe.
[[nodiscard]] instant system_time() noexcept;

struct store_options {
    std::string        path     = {};  ///< Of the file; made if it is missing, its folder is not.
    std::string        secret   = {};  ///< Of the keys: 32 random bytes, the same in all processes.
    duration           deadline =
        std::chrono::milliseconds(50);  ///< Of a decision; then the outage rule decides.
    sqlite::durability survives = durability::process;
    instant (*clock)()          = &system_time;  ///< Asked where the caller hands in no instant.
    duration keep =
        std::chrono::minutes(10);  ///< Of a row, once it is recovered; see docs/sqlite.md.
    std::size_t waiting = 1'024;   ///< Asks under way at once; the outage rule decides on more.
    std::size_t max_keys =
        10'000;  ///< That `local` counts in an outage, for each limiter that has it.
    duration         patience = std::chrono::seconds(5);  ///< For others, while the file is opened.
    warning_listener warn     = &warn_on_stderr;  ///< Told once of each warning (docs/warnings.md).
};

/// What the store knows of one limiter.
template <policy Policy>
class counters {
public:
    counters(std::string_view secret, std::string_view name, const Policy& limit)
        : digest(secret, Policy::id, name, limit.window)
    {
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return sizeof(*this); }

    remote::digest         digest;
    remote::outage<Policy> outage;
};

/// Thread-safe; must outlive the limiters on it, and be made after the process forks. One thread of
/// its own asks the file; callers wait for it up to the deadline and never longer. An answer is
/// `counted`; without one the limiter's outage rule decides, and the basis says so.
class store {
public:
    template <policy Policy>
    struct enrolment {
        sqlite::counters<Policy>* counters = nullptr;
        outage_rule               rule     = {};
    };

    static constexpr bool on_callers_clock = true;

    /// Throws std::invalid_argument for options out of range, and for a file that cannot be opened,
    /// is no database, is read-only, stays locked, or has the layout of a newer version.
    explicit store(const store_options& options);
    ~store();

    /// Throws std::invalid_argument for a limit of 2^62 and more.
    template <policy Policy>
    enrolment<Policy> enrol(std::string_view name, const Policy& limit,
                            outage_rule rule = fail_closed);

    template <policy Policy>
    [[nodiscard]] key digest(const enrolment<Policy>& limiter, const subject& who) const noexcept
    {
        return limiter.counters->digest(who);
    }
    template <policy Policy>
    [[nodiscard]] bool holds(const enrolment<Policy>&, const Policy& limit) const noexcept
    {
        return limit_of(limit) <= most_counted;
    }

    /// One transaction, shared with who else asks at the moment. O(log rows).
    template <policy Policy>
    reply<Policy> answer(const enrolment<Policy>& limiter, const ask<Policy>& question,
                         instant at) noexcept;

    [[nodiscard]] instant now() const noexcept { return options_.clock(); }

    /// Calls `visit(key, state, now)` for each state of a guard's lockouts, on a connection of its
    /// own; O(rows of the file). False if the file cannot be read now. Throws std::bad_alloc.
    template <class Visit>
    bool each_lockout(const enrolment<lockout>& limiter, const lockout& limit, Visit&& visit) const;

private:
    bool marked(std::int64_t mark, std::vector<remote::seen_row>& rows) const;

    store_options      options_;
    writer             writer_;
    enrolled<counters> enrolled_;
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
auto store::enrol(std::string_view name, const Policy& limit, outage_rule rule) -> enrolment<Policy>
{
    if (limit_of(limit) > most_counted)
        detail::invalid("limiter \"" + std::string(name) + "\": the limit is " +
                        std::to_string(limit_of(limit)) + "; sqlite holds at most " +
                        std::to_string(most_counted));
    auto& known = enrolled_.find_or_make(name, limit, [&] {
        return std::make_unique<counters<Policy>>(options_.secret, name, limit);
    });
    known.outage.prepare(name, limit, rule, options_.max_keys);
    return {&known, rule};
}

template <policy Policy>
reply<Policy> store::answer(const enrolment<Policy>& limiter, const ask<Policy>& question,
                            instant at) noexcept
{
    step asked{.who = question.who, .verb = needed(question, at), .at = at};
    if (asked.verb != verb::peek && asked.verb != verb::forget) {
        asked.text    = &spending<Policy>::text;
        asked.numbers = spending<Policy>::of(question, at);
    }
    const auto said = writer_.perform(asked, std::chrono::steady_clock::now() + options_.deadline);
    if (!said.answered) return limiter.counters->outage.answer(limiter.rule, question, at);
    reply<Policy> made{.granted = said.granted};
    if (said.found) made.after = spending<Policy>::state_of(said.after);
    made.at = question.limit.judged_at(made.after, at);
    limiter.counters->outage.heard(limiter.rule, question, made);
    return made;
}

template <class Visit>
bool store::each_lockout(const enrolment<lockout>&, const lockout& limit, Visit&& visit) const
{
    std::vector<remote::seen_row> rows;
    if (!marked(limit.mark, rows)) return false;
    for (const auto& row : rows) visit(row.who, spending<lockout>::state_of(row.words), now());
    return true;
}

}  // namespace weir::sqlite
