// SPDX-License-Identifier: BSL-1.0

// The records in PostgreSQL, which processes on many hosts share. Each function is one statement or
// two, and each statement a transaction.

#include "storage/records.hpp"

#include "storage/postgres/link.hpp"
#include "storage/postgres/schema.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace forms {

namespace postgres {
namespace {

using namespace std::chrono_literals;

const std::string& conninfo_with_tables(const std::string& conninfo)
{
    const auto until = session::clock::now() + 30s;  // others may be making them
    session    on(conninfo, until);
    const auto version = [&] {
        const auto row = on.run(
            "SELECT coalesce(obj_description(to_regnamespace('weir_forms'), 'pg_namespace'), '')",
            {}, until);
        return row.text(0, 0);
    };
    auto found = version();
    if (found.empty()) on.execute(schema_text, until), found = version();
    if (found != schema_version)
        throw storage_error("the schema weir_forms is of \"" + found + "\", and this is " +
                            schema_version);
    return conninfo;
}

submission read_submission(const rows& from, int row, int column)
{
    return {.id          = from.text(row, column),
            .endpoint_id = from.text(row, column + 1),
            .received_at = from.text(row, column + 2),
            .fields      = from.text(row, column + 3),
            .field_count = from.integer(row, column + 4)};
}

/// The arrays of weir_forms.write, in its order.
std::vector<std::string> arrays_of(const batch& all)
{
    text_array ids, endpoints, received, counts, contents, keys, delivered;
    for (const auto* const each : all.kept) {
        const auto& given = each->given;
        ids.add(given.id);
        endpoints.add(given.endpoint_id);
        received.add(given.received_at);
        counts.add(std::to_string(given.field_count));
        contents.add(given.fields);
        keys.add(given.idempotency_key);
    }
    for (const auto each : all.delivered) delivered.add(std::to_string(each));
    return {std::move(ids).text(),      std::move(endpoints).text(), std::move(received).text(),
            std::move(counts).text(),   std::move(contents).text(),  std::move(keys).text(),
            std::move(delivered).text()};
}

class server_records final : public records {
public:
    explicit server_records(const std::string& conninfo) : on_(conninfo) {}

    void allow_until(time_point until) override { until_ = until; }
    void write(const batch& all) override;
    bool create_endpoint(const endpoint& made) override;
    bool change_endpoint(std::string_view id, bool active) override;
    std::vector<endpoint>   endpoints_since(std::int64_t revision) override;
    std::optional<page>     submissions_of(std::string_view endpoint_id, std::string_view after,
                                           std::int64_t most) override;
    std::vector<submission> claim(std::int64_t most) override;

private:
    rows run(const char* sql, const std::vector<std::string>& values)
    {
        return on_.run(sql, values, until_);
    }
    std::optional<std::string> seq_of(std::string_view endpoint_id, std::string_view after);

    link       on_;
    time_point until_ = time_point::max();
};

void server_records::write(const batch& all)
{
    const auto originals = run("SELECT * FROM weir_forms.write($1, $2, $3, $4, $5, $6, $7)",
                               arrays_of(all));
    for (int row = 0; row < originals.size(); ++row) {
        auto& one      = *all.kept.at(static_cast<std::size_t>(originals.integer(row, 0) - 1));
        auto  original = read_submission(originals, row, 1);
        const bool same = original.fields == one.given.fields;
        one.outcome     = same ? receipt::replayed : receipt::conflicting;
        if (same) one.given = std::move(original);
    }
}

bool server_records::create_endpoint(const endpoint& made)
{
    return run("SELECT weir_forms.set_endpoint($1, $2, $3)",
               {made.id, made.active ? "t" : "f", made.made_at})
        .truth(0, 0);
}

bool server_records::change_endpoint(std::string_view id, bool active)
{
    return run("SELECT weir_forms.set_endpoint($1, $2, NULL)",
               {std::string(id), active ? "t" : "f"})
        .truth(0, 0);
}

std::vector<endpoint> server_records::endpoints_since(std::int64_t revision)
{
    const auto found = run("SELECT id, active, made_at, revision FROM weir_forms.endpoints"
                           " WHERE revision > $1 ORDER BY revision",
                           {std::to_string(revision)});
    std::vector<endpoint> changed;
    for (int row = 0; row < found.size(); ++row)
        changed.push_back({.id       = found.text(row, 0),
                           .active   = found.truth(row, 1),
                           .made_at  = found.text(row, 2),
                           .revision = found.integer(row, 3)});
    return changed;
}

/// The place of a submission; none if there is no such one.
std::optional<std::string> server_records::seq_of(std::string_view endpoint_id,
                                                  std::string_view after)
{
    if (after.empty()) return "0";
    // Ids are of ASCII; the server would not even look at bytes that are no text.
    if (std::ranges::any_of(after, [](char c) { return c <= ' ' || c > '~'; })) return std::nullopt;
    const auto found = run("SELECT seq FROM weir_forms.submissions"
                           " WHERE submission_id = $1 AND endpoint_id = $2",
                           {std::string(after), std::string(endpoint_id)});
    if (found.size() == 0) return std::nullopt;
    return found.text(0, 0);
}

/// The server cuts the page, so that no more is sent than is wanted. The length of a text is known
/// without reading it.
std::optional<page> server_records::submissions_of(std::string_view endpoint_id,
                                                   std::string_view after, std::int64_t most)
{
    const auto from = seq_of(endpoint_id, after);
    if (!from) return std::nullopt;
    const auto found = run(
        "SELECT submission_id, endpoint_id, received_at, fields, field_count, there"
        " FROM (SELECT *, row_number() OVER w AS n, count(*) OVER () AS there,"
        "         sum(octet_length(fields)) OVER w - octet_length(fields) AS before"
        "       FROM (SELECT * FROM weir_forms.submissions WHERE endpoint_id = $1 AND seq > $2"
        "             ORDER BY seq LIMIT $3::bigint + 1) AS s WINDOW w AS (ORDER BY seq)) AS p"
        " WHERE n <= $3::bigint AND before < $4::bigint ORDER BY seq",
        {std::string(endpoint_id), *from, std::to_string(most), std::to_string(page::most_bytes)});
    page one;
    for (int row = 0; row < found.size(); ++row)
        one.found.push_back(read_submission(found, row, 0));
    one.more = found.size() > 0 && found.integer(0, 5) > found.size();
    return one;
}

/// A claim that was not reported lapses, but never while the database is away, and whoever
/// delivered just before that has as long again to report it.
std::vector<submission> server_records::claim(std::int64_t most)
{
    const auto lapse = std::to_string(storage::claim_lasts.count());
    const auto found = run(
        "WITH free AS MATERIALIZED ("
        "   SELECT seq FROM weir_forms.deliveries WHERE claimed_at IS NULL OR greatest(claimed_at,"
        "     pg_postmaster_start_time()) < clock_timestamp() - make_interval(secs => $2)"
        "   ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED),"
        " mine AS (UPDATE weir_forms.deliveries SET claimed_at = clock_timestamp()"
        "   WHERE seq = ANY (ARRAY (SELECT f.seq FROM free AS f)) RETURNING seq)"
        " SELECT submission_id, endpoint_id, received_at, fields, field_count, seq"
        " FROM weir_forms.submissions WHERE seq = ANY (ARRAY (SELECT m.seq FROM mine AS m))"
        " ORDER BY seq",
        {std::to_string(most), lapse});
    std::vector<submission> claimed;
    for (int row = 0; row < found.size(); ++row) {
        claimed.push_back(read_submission(found, row, 0));
        claimed.back().seq = found.integer(row, 5);
    }
    return claimed;
}

class server_storage final : public storage {
public:
    explicit server_storage(const std::string& conninfo)
        : conninfo_(conninfo_with_tables(conninfo))
    {
    }

    /// Waiting and working, that is two seconds at most until a request is answered.
    [[nodiscard]] std::chrono::milliseconds patience() const noexcept override { return 1s; }

    std::unique_ptr<records> open() override
    {
        return std::make_unique<server_records>(conninfo_);
    }

private:
    std::string conninfo_;
};

}  // namespace
}  // namespace postgres

std::unique_ptr<storage> postgres_storage(const std::string& conninfo)
{
    return std::make_unique<postgres::server_storage>(conninfo);
}

bool is_conninfo(const std::string& conninfo)
{
    // What libpq would say of a URL has all of it in it, the password too.
    auto* const parsed = PQconninfoParse(conninfo.c_str(), nullptr);
    PQconninfoFree(parsed);
    return parsed != nullptr;
}

}  // namespace forms
