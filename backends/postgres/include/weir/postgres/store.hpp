// SPDX-License-Identifier: BSL-1.0
#pragma once

// Counters in PostgreSQL, one limit for every process that asks there:
//
//     weir::postgres::store counters({.conninfo = database_url, .key_secret = secret});
//     weir::limiter per_ip("site.ip", weir::fixed_window{.limit = 60, .window = 1min}, counters);
//
// docs/postgresql.md says how to set it up, what survives a crash, and how fast it is.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/key.hpp"
#include "weir/pending.hpp"
#include "weir/policy.hpp"
#include "weir/postgres/connection.hpp"
#include "weir/postgres/counters.hpp"
#include "weir/postgres/spending.hpp"
#include "weir/remote/birthplace.hpp"
#include "weir/remote/line.hpp"
#include "weir/remote/row.hpp"
#include "weir/remote/seat.hpp"
#include "weir/store.hpp"
#include "weir/store/enrolled.hpp"
#include "weir/time.hpp"
#include "weir/warning.hpp"

namespace weir::remote {
class attendant;
}  // namespace weir::remote

namespace weir::postgres {

class connector;

struct store_options {
    std::string conninfo   = {};  ///< As libpq takes it: a URL, or "host=… dbname=…".
    std::string key_secret = {};  ///< Of the keys: 32 random bytes, the same in all processes.
    duration    deadline   = std::chrono::milliseconds(50);  ///< Of a decision; then the outage
                                                             ///< rule decides.
    std::size_t          connections = 2;       ///< Keys are spread over them; 1 … 64.
    std::string          schema      = "weir";  ///< Lower-case letters, digits and _.
    bool                 make_schema = true;    ///< If it is missing and the role may.
    postgres::durability survives    = durability::logged;  ///< Of a schema that is made.

    /// True only where no pooler stands before the server: saves it the parsing of each statement.
    bool named_statements = false;

    duration    memo_longest = std::chrono::seconds(1);  ///< That a refusal is believed; 0: never.
    std::size_t remembered   = 8'192;  ///< Keys and refusals kept, for each limiter.
    duration    keep         = std::chrono::minutes(1);  ///< Of a row, once it is recovered: longer
                                                         ///< than a statement may wait for a lock.
    std::size_t waiting  = 4'096;   ///< Asks under way at once, for each connection.
    std::size_t max_keys = 10'000;  ///< That `local` counts in an outage, for each limiter with it.

    duration patience = std::chrono::seconds(5);  ///< For an attempt to connect.
    /// True: a server that cannot be reached at the start is an outage. False: it is an exception.
    bool             start_unconnected = false;
    warning_listener warn              = &warn_on_stderr;  ///< Told of warnings (docs/warnings.md).
};

/// Thread-safe; must outlive the limiters on it. Make it after the process forks: in a child it
/// does not answer, and leaves its parent's connections alone. It judges by the database's clock:
/// no question takes an instant. Whoever asks waits up to the deadline and never longer, and shares
/// a statement with all who ask meanwhile; no lock is held while the server works. An answer is
/// `counted`, `leased` or `remembered`; without one the limiter's outage rule decides, and the
/// basis says so.
class store final : remote::caretaker {
public:
    template <policy Policy>
    struct enrolment {
        postgres::counters<Policy>* counters = nullptr;
        outage_rule                 rule     = {};
    };

    /// An ask of a set that is answered as a whole.
    struct staged : remote::seat {
        /// What is known beside what was said: that it is refused, that another one is so that
        /// nobody was asked, or that it would fit and was undone because another one did not.
        enum class known : std::uint8_t { nothing, refusal, skipped, undone };
        staged::known here = known::nothing;

        /// A refusal that is known: the state, bytewise, and when.
        std::array<std::byte, 24> after = {};
        instant                   at = {}, clock = {};
    };

    static constexpr bool on_callers_clock = false;

    /// Connects, and makes the schema if it is missing. Throws std::invalid_argument for options
    /// out of range and for a schema that is newer or cannot be made; `unreachable`, a
    /// std::runtime_error, if there is no server to talk to.
    explicit store(const store_options& options);
    ~store();

    /// Throws std::invalid_argument for a limit of 2^62 and more, or a window of over 100 years.
    template <policy Policy>
    enrolment<Policy> enrol(std::string_view name, const Policy& limit,
                            outage_rule rule = fail_closed);

    template <policy Policy>
    [[nodiscard]] key digest(const enrolment<Policy>& limiter, const subject& who) const noexcept
    {
        return limiter.counters->key_of(who);
    }
    template <policy Policy>
    [[nodiscard]] bool holds(const enrolment<Policy>&, const Policy& limit) const noexcept
    {
        return limit_of(limit) <= most_counted && limit.window <= longest_window;
    }

    /// Blocks up to the deadline. O(1), and a share of a statement of O(log rows).
    template <policy Policy>
    reply<Policy> answer(const enrolment<Policy>& limiter, const ask<Policy>& question) noexcept;

    /// Does not block: `done(const reply<Policy>&)` runs once, here if the answer is known, or
    /// else on the store's own thread, which is made at the first such ask. It must not block or
    /// throw. Allocates; throws std::bad_alloc before anything is asked.
    template <policy Policy, class Done>
    void answer_then(const enrolment<Policy>& limiter, const ask<Policy>& question, Done done);

    /// All or nothing, in one transaction, in the order of keys. For weir::admit_all. Where a
    /// refusal is remembered the rest of the set is not looked at, and told as untouched.
    void admit_set(std::span<const pending> set) noexcept;

    template <policy Policy>
    void stage(const enrolment<Policy>& limiter, const ask<Policy>& question,
               staged& slot) noexcept;
    template <policy Policy>
    reply<Policy> resolve(const enrolment<Policy>& limiter, const ask<Policy>& question,
                          const staged& slot) noexcept;

    /// Calls `visit(key, state, now)` for each state of a guard's lockouts, on a connection of its
    /// own; blocks up to `patience`; O(rows of the table). False if the server does not answer.
    /// Throws std::bad_alloc.
    template <class Visit>
    bool each_lockout(const enrolment<lockout>& limiter, const lockout& limit, Visit&& visit) const;

private:
    template <policy Policy, class Done>
    struct callback;

    bool marked(std::int64_t mark, std::vector<remote::seen_row>& rows) const;

    remote::line& line_of(const key& who) noexcept { return *lines_[who.low % lines_.size()]; }

    [[nodiscard]] remote::seat::time_point deadline() const noexcept;
    static void too_much(std::string_view name, std::uint64_t limit, duration window);
    void connect();
    void leave_to_parent() noexcept;
    bool be_attended() noexcept;
    void ask_together(std::span<remote::seat* const> seats) noexcept;
    void asked_without_a_trip(const key& who) noexcept;

    void lost() noexcept override;
    void poke() noexcept override;
    void changed(bool answers) noexcept override;

    remote::birthplace born_;
    store_options      options_;
    place              place_;
    manners            manners_;
    enrolled<counters> enrolled_;

    std::vector<std::unique_ptr<remote::line>> lines_;
    std::unique_ptr<connector>                 connector_;
    std::mutex                                 making_;
    std::unique_ptr<remote::attendant>         owned_attendant_;
    std::atomic<remote::attendant*>            attendant_ = nullptr;
    std::atomic<std::size_t>                   away_      = 0;  // lines that do not answer
};

// ---------------------------------------------------------------------------------------------

template <policy Policy>
auto store::enrol(std::string_view name, const Policy& limit, outage_rule rule) -> enrolment<Policy>
{
    if (!holds(enrolment<Policy>{}, limit)) too_much(name, limit_of(limit), limit.window);
    auto& known = enrolled_.find_or_make(name, limit, [&] {
        return std::make_unique<counters<Policy>>(
            counters_options{options_.key_secret, options_.remembered, options_.memo_longest}, name,
            limit, manners_);
    });
    known.outage.prepare(name, limit, rule, options_.max_keys);
    return {&known, rule};
}

template <policy Policy>
reply<Policy> store::answer(const enrolment<Policy>& limiter, const ask<Policy>& question) noexcept
{
    auto&      known = *limiter.counters;
    const auto here  = weir::now();
    if (const auto said = known.at_hand(question, here, limiter.rule)) {
        asked_without_a_trip(question.who);
        return *said;
    }
    remote::seat own;
    const auto   begun = known.begin(question, here, own.asked);
    own.until          = deadline();
    line_of(question.who).ask(own);
    return known.end(begun, limiter.rule, own);
}

/// A seat that frees itself once its answer is told.
template <policy Policy, class Done>
struct store::callback : remote::seat {
    callback(const enrolment<Policy>& limiter_, Done&& done_)
        : limiter(limiter_), done(std::move(done_))
    {
    }

    static void tell(remote::seat& seat) noexcept
    {
        const std::unique_ptr<callback> own(static_cast<callback*>(&seat));
        own->done(own->limiter.counters->end(own->begun, own->limiter.rule, *own));
    }

    enrolment<Policy> limiter;
    call<Policy>      begun = {};
    Done              done;
};

template <policy Policy, class Done>
void store::answer_then(const enrolment<Policy>& limiter, const ask<Policy>& question, Done done)
{
    auto&      known = *limiter.counters;
    const auto here  = weir::now();
    if (const auto said = known.at_hand(question, here, limiter.rule)) {
        asked_without_a_trip(question.who);
        return done(*said);
    }
    const bool attended = be_attended();
    auto       own      = std::make_unique<callback<Policy, Done>>(limiter, std::move(done));
    own->begun          = known.begin(question, here, own->asked);
    own->until          = deadline();
    own->complete       = &callback<Policy, Done>::tell;
    auto&       line    = line_of(question.who);
    auto* const seat    = own.release();  // whoever completes it frees it
    if (!attended || !line.post(*seat)) seat->complete(*seat);
}

template <policy Policy>
void store::stage(const enrolment<Policy>& limiter, const ask<Policy>& question,
                  staged& slot) noexcept
{
    slot.asked      = limiter.counters->row_of(question);
    const auto said = limiter.counters->refusal(question, weir::now());
    if (!said) return;
    slot.here  = staged::known::refusal;
    slot.at    = said->at;
    slot.clock = said->asked;
    std::memcpy(slot.after.data(), &said->after, sizeof said->after);
}

template <policy Policy>
reply<Policy> store::resolve(const enrolment<Policy>& limiter, const ask<Policy>& question,
                             const staged& slot) noexcept
{
    auto&      known = *limiter.counters;
    const auto here  = weir::now();
    if (slot.here == staged::known::skipped)
        return {.at = here, .basis = basis::remembered, .asked = here};
    if (slot.here == staged::known::refusal) {
        reply<Policy> said{.at = slot.at, .basis = basis::remembered, .asked = slot.clock};
        std::memcpy(&said.after, slot.after.data(), sizeof said.after);
        return said;
    }
    if (!slot.answered) return known.unanswered(question, limiter.rule, here);
    auto made = counters<Policy>::read(question, 1, slot);
    if (slot.here != staged::known::undone) return known.heard(question, limiter.rule, made), made;
    const auto& limit = question.limit;
    limit.give_back(made.after, question.cost, limit.lapses(told(question, made, {}, made.asked)),
                    made.at);
    made.granted = 0;
    return made;
}

template <class Visit>
bool store::each_lockout(const enrolment<lockout>&, const lockout& limit, Visit&& visit) const
{
    std::vector<remote::seen_row> rows;
    if (!marked(limit.mark, rows)) return false;
    for (const auto& row : rows) visit(row.who, spending<lockout>::state_of(row.words), row.at);
    return true;
}

}  // namespace weir::postgres
