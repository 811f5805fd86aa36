// SPDX-License-Identifier: BSL-1.0

#include "storage/connection.hpp"

#include <charconv>

namespace signup {

namespace {

constexpr const char* applications = R"(CREATE TABLE IF NOT EXISTS signup_applications (
    id           TEXT PRIMARY KEY,
    canonical    TEXT NOT NULL UNIQUE,
    email        TEXT NOT NULL,
    name         TEXT NOT NULL,
    about        TEXT NOT NULL,
    received_at  BIGINT NOT NULL,
    confirmed_at BIGINT))";

/// What happened. `deferred_until` stands with `submission_received` if its mail has to wait.
constexpr const char* events = R"(CREATE TABLE IF NOT EXISTS signup_events (
    application    TEXT NOT NULL REFERENCES signup_applications (id),
    kind           TEXT NOT NULL,
    at             BIGINT NOT NULL,
    deferred_until BIGINT))";

/// `counted`: 1 for the first mail of an application, which the caps are about. `released_at`: the
/// instant by which it counts, once a worker took it. `begun_at`: a worker handed it on and has not
/// said what became of it.
constexpr const char* mails = R"(CREATE TABLE IF NOT EXISTS signup_mails (
    id            TEXT PRIMARY KEY,
    application   TEXT NOT NULL REFERENCES signup_applications (id),
    kind          TEXT NOT NULL,
    counted       BIGINT NOT NULL,
    due_at        BIGINT NOT NULL,
    tries         BIGINT NOT NULL DEFAULT 0,
    claim         TEXT,
    lease_until   BIGINT NOT NULL DEFAULT 0,
    begun_at      BIGINT,
    released_at   BIGINT,
    expires_at    BIGINT,
    sent_at       BIGINT,
    perhaps_twice BIGINT NOT NULL DEFAULT 0,
    given_up      TEXT))";

constexpr const char* waiting = R"(CREATE INDEX IF NOT EXISTS signup_mails_waiting
    ON signup_mails (due_at) WHERE sent_at IS NULL AND given_up IS NULL)";

constexpr const char* released = R"(CREATE INDEX IF NOT EXISTS signup_mails_released
    ON signup_mails (released_at) WHERE counted = 1)";

constexpr const char* of_application = R"(CREATE INDEX IF NOT EXISTS signup_mails_of_application
    ON signup_mails (application))";

}  // namespace

std::initializer_list<const char*> tables() noexcept
{
    static constexpr std::initializer_list<const char*> all = {
        applications, events, mails, waiting, released, of_application};
    return all;
}

std::int64_t row::integer(std::size_t n) const
{
    std::int64_t number = 0;
    const auto   digits = text(n);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

}  // namespace signup
