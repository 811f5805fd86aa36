// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calendar caps within the caller's own transaction: the place is held if and when he commits.
//
//     weir::postgres::calendar mails(connection, "mails", {.per_hour = 30, .per_day = 100});
//     BEGIN, INSERT the row …
//     const auto place = mails.place(connection);
//     if (!place) ROLLBACK … else INSERT the job, due at place.release, COMMIT
//
// docs/deferral.md says how it is exact and what it costs. Needs no header of libpq.

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/key.hpp"
#include "weir/policy/calendar_caps.hpp"
#include "weir/time.hpp"

struct pg_conn;

namespace weir::postgres {

struct calendar_options {
    std::string schema      = "weir";
    bool        make_schema = true;  ///< Make what is missing in it.
};

/// Thread-safe, one connection being used by one thread at a time. Any number of processes may
/// share a calendar; all of them must give it the same caps.
class calendar {
public:
    static constexpr bool places_atomically = true;

    /// Looks at the server through `by`, which must be outside of a transaction. Throws
    /// std::invalid_argument for caps that have a complaint, for a server that cannot hold places
    /// (older than PostgreSQL 14, or read-only) and for a schema that is missing and may not be
    /// made; `unreachable` if the server does not answer.
    calendar(pg_conn* by, std::string name, const calendar_caps& caps,
             calendar_options options = {});

    /// Holds the first place from the server's time on, within the transaction that `within` is in:
    /// call it after what decides that there is something to release. Waits for no other
    /// transaction. `failed` outside of a transaction, or if the statement failed, as
    /// PQerrorMessage tells: the transaction is lost then, and may be tried again. One round trip.
    placement place(pg_conn* within);

    /// The same from `at` on.
    placement place(pg_conn* within, instant at);

    /// Fair instead of at once (do one or the other): puts `item`, the name of your job, behind
    /// what waits of `source`, within the caller's transaction. False if it failed, and for an item
    /// with a zero byte.
    [[nodiscard]] bool enqueue(pg_conn* within, const key& source, std::string_view item);

    /// Takes out of the queue what may go now, at most `most`, within the caller's transaction: let
    /// him make those jobs due in it. Waits for other releases of this calendar.
    [[nodiscard]] std::vector<std::string> release(pg_conn* within, std::size_t most);
    [[nodiscard]] std::vector<std::string> release(pg_conn* within, std::size_t most, instant at);

    /// Deletes places more than two days older than `at`; to be called now and then. False if it
    /// failed.
    bool sweep(pg_conn* by, instant at);

    [[nodiscard]] const calendar_caps& caps() const noexcept { return caps_; }

private:
    placement                place_from(pg_conn* within, const std::string* at);
    std::vector<std::string> release_at(pg_conn* within, std::size_t most, const std::string* at);
    detail::full_run         known_full();
    void                     learn(std::int64_t from, std::int64_t until);

    std::string      name_, schema_;
    calendar_caps    caps_;
    std::string      caps_text_;
    std::mutex       turn_;
    detail::full_run full_;  // by committed places only, so it is true for ever
};

static_assert(atomic_calendar<calendar, pg_conn*>);

}  // namespace weir::postgres
