// SPDX-License-Identifier: BSL-1.0

#include "storage/records.hpp"

#include <cstddef>
#include <iterator>

namespace forms {

namespace {

/// seq is the order of keeping; submission_id is what is told, and does not tell how many there
/// are. An idempotency key that is NULL is unlike every other.
constexpr const char* schema = R"(
    CREATE TABLE IF NOT EXISTS endpoints (
        id       TEXT PRIMARY KEY,
        active   INTEGER NOT NULL,
        made_at  TEXT NOT NULL,
        revision INTEGER NOT NULL UNIQUE
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS submissions (
        seq             INTEGER PRIMARY KEY,
        submission_id   TEXT NOT NULL UNIQUE,
        endpoint_id     TEXT NOT NULL,
        received_at     TEXT NOT NULL,
        field_count     INTEGER NOT NULL,
        fields          TEXT NOT NULL,
        idempotency_key TEXT
    );
    CREATE INDEX IF NOT EXISTS submissions_of_endpoint ON submissions (endpoint_id, seq);
    CREATE UNIQUE INDEX IF NOT EXISTS submissions_once ON submissions (endpoint_id, idempotency_key)
        WHERE idempotency_key IS NOT NULL;
    CREATE TABLE IF NOT EXISTS deliveries (
        seq INTEGER PRIMARY KEY REFERENCES submissions (seq)
    );
)";

/// A page ends early when its fields are this long together: so much is held in memory at once.
constexpr std::size_t most_bytes = std::size_t{8} << 20;

submission read_submission(const statement& row)
{
    return {.id          = std::string(row.text(0)),
            .endpoint_id = std::string(row.text(1)),
            .received_at = std::string(row.text(2)),
            .fields      = std::string(row.text(3)),
            .field_count = row.integer(4)};
}

/// The first column of the one row, or none.
template <class... Value>
std::optional<std::int64_t> one_number(connection& on, const char* sql, const Value&... values)
{
    auto row = on.run(sql, values...);
    if (!row.next()) return std::nullopt;
    return row.integer(0);
}

}  // namespace

void create_tables(connection& on)
{
    on.execute(schema);
}

bool create_endpoint(connection& on, const endpoint& made)
{
    on.run("INSERT INTO endpoints (id, active, made_at, revision) SELECT ?, ?, ?,"
           " coalesce((SELECT max(revision) FROM endpoints), 0) + 1 WHERE true"
           " ON CONFLICT (id) DO NOTHING",
           std::string_view(made.id), std::int64_t{made.active}, std::string_view(made.made_at))
        .next();
    return on.changed() == 1;
}

bool change_endpoint(connection& on, std::string_view id, bool active)
{
    on.run("UPDATE endpoints SET active = ?,"
           " revision = (SELECT max(revision) FROM endpoints) + 1 WHERE id = ?",
           std::int64_t{active}, id)
        .next();
    return on.changed() == 1;
}

std::vector<endpoint> endpoints_since(connection& on, std::int64_t revision)
{
    std::vector<endpoint> found;
    auto row = on.run("SELECT id, active, made_at, revision FROM endpoints WHERE revision > ?"
                      " ORDER BY revision", revision);
    while (row.next())
        found.push_back({.id       = std::string(row.text(0)),
                         .active   = row.integer(1) != 0,
                         .made_at  = std::string(row.text(2)),
                         .revision = row.integer(3)});
    return found;
}

receipt keep(connection& on, submission& given)
{
    on.run("INSERT INTO submissions (submission_id, endpoint_id, received_at, field_count, fields,"
           " idempotency_key) VALUES (?, ?, ?, ?, ?, ?)"
           " ON CONFLICT (endpoint_id, idempotency_key) WHERE idempotency_key IS NOT NULL"
           " DO NOTHING",
           std::string_view(given.id), std::string_view(given.endpoint_id),
           std::string_view(given.received_at), given.field_count, std::string_view(given.fields),
           given.idempotency_key)
        .next();
    if (on.changed() == 1) {
        on.run("INSERT INTO deliveries (seq) VALUES (last_insert_rowid())").next();
        return receipt::stored;
    }
    auto row = on.run("SELECT submission_id, endpoint_id, received_at, fields, field_count"
                      " FROM submissions WHERE endpoint_id = ? AND idempotency_key = ?",
                      std::string_view(given.endpoint_id), given.idempotency_key);
    row.next();
    if (row.text(3) != given.fields) return receipt::conflicting;
    given = read_submission(row);
    return receipt::replayed;
}

std::optional<page> submissions_of(connection& on, std::string_view endpoint_id,
                                   std::string_view after, std::int64_t most)
{
    std::int64_t from = 0;
    if (!after.empty()) {
        const auto found = one_number(
            on, "SELECT seq FROM submissions WHERE submission_id = ? AND endpoint_id = ?", after,
            endpoint_id);
        if (!found) return std::nullopt;
        from = *found;
    }
    page one;
    auto row = on.run("SELECT submission_id, endpoint_id, received_at, fields, field_count"
                      " FROM submissions WHERE endpoint_id = ? AND seq > ? ORDER BY seq LIMIT ?",
                      endpoint_id, from, most + 1);
    std::size_t bytes = 0;
    while (row.next()) {
        one.more = std::ssize(one.found) == most || bytes >= most_bytes;
        if (one.more) break;
        one.found.push_back(read_submission(row));
        bytes += one.found.back().fields.size();
    }
    return one;
}

std::vector<submission> undelivered(connection& on, std::int64_t most)
{
    std::vector<submission> found;
    auto row = on.run("SELECT submission_id, endpoint_id, received_at, fields, field_count"
                      " FROM deliveries JOIN submissions USING (seq) ORDER BY seq LIMIT ?", most);
    while (row.next()) found.push_back(read_submission(row));
    return found;
}

void mark_delivered(connection& on, const std::vector<submission>& done)
{
    for (const auto& each : done)
        on.run("DELETE FROM deliveries WHERE seq ="
               " (SELECT seq FROM submissions WHERE submission_id = ?)",
               std::string_view(each.id))
            .next();
}

}  // namespace forms
