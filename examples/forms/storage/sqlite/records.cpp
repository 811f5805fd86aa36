// SPDX-License-Identifier: BSL-1.0

// The records in a file that the processes of one host share.

#include "file.hpp"
#include "storage/records.hpp"
#include "storage/sqlite/connection.hpp"

#include <cstddef>
#include <iterator>
#include <utility>

#include <fcntl.h>

namespace forms {

namespace sqlite {
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

submission read_submission(const statement& row)
{
    return {.id          = std::string(row.text(0)),
            .endpoint_id = std::string(row.text(1)),
            .received_at = std::string(row.text(2)),
            .fields      = std::string(row.text(3)),
            .field_count = row.integer(4)};
}

class file_records final : public records {
public:
    explicit file_records(const std::string& path) : on_(path) {}

    void write(const batch& all) override;
    bool create_endpoint(const endpoint& made) override;
    bool change_endpoint(std::string_view id, bool active) override;
    std::vector<endpoint>   endpoints_since(std::int64_t revision) override;
    std::optional<page>     submissions_of(std::string_view endpoint_id, std::string_view after,
                                           std::int64_t most) override;
    std::vector<submission> claim(std::int64_t most) override;

private:
    void write_all(const batch& all);
    void keep(keeping& one);
    void mark_delivered(std::int64_t seq);

    connection on_;
};

void file_records::write(const batch& all)
{
    try {
        on_.execute("BEGIN IMMEDIATE");
        write_all(all);
        on_.execute("COMMIT");
    } catch (...) {
        // Fails where the transaction was never begun or is undone already, which is all we want.
        try { on_.execute("ROLLBACK"); } catch (const storage_error&) {}
        throw;
    }
}

void file_records::write_all(const batch& all)
{
    for (auto* const each : all.kept) keep(*each);
    for (const auto each : all.delivered) mark_delivered(each);
}

void file_records::keep(keeping& one)
{
    auto& given = one.given;
    on_.run("INSERT INTO submissions (submission_id, endpoint_id, received_at, field_count, fields,"
            " idempotency_key) VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (endpoint_id, idempotency_key) WHERE idempotency_key IS NOT NULL"
            " DO NOTHING",
            std::string_view(given.id), std::string_view(given.endpoint_id),
            std::string_view(given.received_at), given.field_count, std::string_view(given.fields),
            given.idempotency_key)
        .next();
    if (on_.changed() == 1) {
        on_.run("INSERT INTO deliveries (seq) VALUES (last_insert_rowid())").next();
        return;
    }
    auto row = on_.run("SELECT submission_id, endpoint_id, received_at, fields, field_count"
                       " FROM submissions WHERE endpoint_id = ? AND idempotency_key = ?",
                       std::string_view(given.endpoint_id), given.idempotency_key);
    row.next();
    one.outcome = row.text(3) == given.fields ? receipt::replayed : receipt::conflicting;
    if (one.outcome == receipt::replayed) given = read_submission(row);
}

void file_records::mark_delivered(std::int64_t seq)
{
    on_.run("DELETE FROM deliveries WHERE seq = ?", seq).next();
}

bool file_records::create_endpoint(const endpoint& made)
{
    on_.run("INSERT INTO endpoints (id, active, made_at, revision) SELECT ?, ?, ?,"
            " coalesce((SELECT max(revision) FROM endpoints), 0) + 1 WHERE true"
            " ON CONFLICT (id) DO NOTHING",
            std::string_view(made.id), std::int64_t{made.active}, std::string_view(made.made_at))
        .next();
    return on_.changed() == 1;
}

bool file_records::change_endpoint(std::string_view id, bool active)
{
    on_.run("UPDATE endpoints SET active = ?,"
            " revision = (SELECT max(revision) FROM endpoints) + 1 WHERE id = ?",
            std::int64_t{active}, id)
        .next();
    return on_.changed() == 1;
}

/// The write lock of the file hands out revisions in the order of commits.
std::vector<endpoint> file_records::endpoints_since(std::int64_t revision)
{
    std::vector<endpoint> found;
    auto row = on_.run("SELECT id, active, made_at, revision FROM endpoints WHERE revision > ?"
                       " ORDER BY revision", revision);
    while (row.next())
        found.push_back({.id       = std::string(row.text(0)),
                         .active   = row.integer(1) != 0,
                         .made_at  = std::string(row.text(2)),
                         .revision = row.integer(3)});
    return found;
}

std::optional<page> file_records::submissions_of(std::string_view endpoint_id,
                                                 std::string_view after, std::int64_t most)
{
    std::int64_t from = 0;
    if (!after.empty()) {
        auto row = on_.run(
            "SELECT seq FROM submissions WHERE submission_id = ? AND endpoint_id = ?", after,
            endpoint_id);
        if (!row.next()) return std::nullopt;
        from = row.integer(0);
    }
    page one;
    auto row = on_.run("SELECT submission_id, endpoint_id, received_at, fields, field_count"
                       " FROM submissions WHERE endpoint_id = ? AND seq > ? ORDER BY seq LIMIT ?",
                       endpoint_id, from, most + 1);
    std::int64_t bytes = 0;
    while (row.next()) {
        one.more = std::ssize(one.found) == most || bytes >= page::most_bytes;
        if (one.more) break;
        one.found.push_back(read_submission(row));
        bytes += std::ssize(one.found.back().fields);
    }
    return one;
}

/// Whoever has the turn is alone.
std::vector<submission> file_records::claim(std::int64_t most)
{
    std::vector<submission> found;
    auto row = on_.run("SELECT submission_id, endpoint_id, received_at, fields, field_count, seq"
                       " FROM deliveries JOIN submissions USING (seq) ORDER BY seq LIMIT ?", most);
    while (row.next()) {
        found.push_back(read_submission(row));
        found.back().seq = row.integer(5);
    }
    return found;
}

class file_storage final : public storage {
public:
    /// Before anybody else opens the file, so that all find the tables. What people send to forms
    /// is nobody's business on this host: SQLite gives the files beside it the mode of this one.
    explicit file_storage(std::string path) : path_(std::move(path))
    {
        file(path_, O_RDWR | O_CREAT | O_CLOEXEC);
        connection(path_).execute(schema);
        file(turn_path(), turn_flags);
    }

    /// Longer than a connection waits for other writers.
    [[nodiscard]] std::chrono::milliseconds patience() const noexcept override
    {
        return std::chrono::seconds(10);
    }

    std::unique_ptr<records> open() override { return std::make_unique<file_records>(path_); }

    /// A lock beside the database; the system frees it if this process dies.
    std::shared_ptr<void> delivery_turn() override
    {
        auto turn = std::make_shared<file>(turn_path(), turn_flags);
        turn->lock();
        return turn;
    }

private:
    static constexpr int turn_flags = O_RDWR | O_CREAT | O_CLOEXEC;

    [[nodiscard]] std::string turn_path() const { return path_ + "-delivery"; }

    std::string path_;
};

}  // namespace
}  // namespace sqlite

std::unique_ptr<storage> sqlite_storage(const std::string& path)
{
    return std::make_unique<sqlite::file_storage>(path);
}

}  // namespace forms
