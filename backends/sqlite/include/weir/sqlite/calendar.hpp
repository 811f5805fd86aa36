// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calendar caps within the caller's own transaction: the place is held if and when he commits.
//
//     weir::sqlite::calendar mails(db, "mails", {.per_hour = 30, .per_day = 100});
//     BEGIN IMMEDIATE, INSERT the row …
//     const auto place = mails.place(db, weir::now());
//     if (!place) ROLLBACK … else INSERT the job, due at place.release, COMMIT
//
// docs/deferral.md says how it is exact. Needs no header of SQLite.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weir/key.hpp"
#include "weir/policy/calendar_caps.hpp"
#include "weir/time.hpp"

struct sqlite3;

namespace weir::sqlite {

/// Thread-safe, one connection being used by one thread at a time. Any number of processes may
/// share a calendar; all of them must give it the same caps.
class calendar {
public:
    static constexpr bool places_atomically = true;

    /// Makes what is missing in the file; `by` must then be outside of a transaction. Throws
    /// std::invalid_argument for caps that have a complaint and for a file that cannot be written.
    calendar(sqlite3* by, std::string name, const calendar_caps& caps);

    /// Holds the first place from `at` on, within the transaction that `within` is in. `failed`
    /// outside of a transaction, or if a statement failed, as sqlite3_errmsg tells: roll back then.
    /// Never SQLITE_BUSY after BEGIN IMMEDIATE. O(log windows), amortised.
    placement place(sqlite3* within, instant at);

    /// Fair instead of at once (do one or the other): puts `item`, the name of your job, behind
    /// what waits of `source`, within the caller's transaction. False if it failed.
    [[nodiscard]] bool enqueue(sqlite3* within, const key& source, std::string_view item);

    /// Takes out of the queue what may go at `at`, at most `most`, within the caller's transaction:
    /// let him make those jobs due in it. Nothing if a statement failed: roll back then.
    [[nodiscard]] std::vector<std::string> release(sqlite3* within, std::size_t most, instant at);

    /// Deletes counts more than two days older than `at`; to be called now and then. False if it
    /// failed.
    bool sweep(sqlite3* by, instant at);

    [[nodiscard]] const calendar_caps& caps() const noexcept { return caps_; }

private:
    std::string   name_;
    calendar_caps caps_;
    std::string   caps_text_;
};

static_assert(atomic_calendar<calendar, sqlite3*>);

}  // namespace weir::sqlite
