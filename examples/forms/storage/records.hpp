// SPDX-License-Identifier: BSL-1.0
#pragma once

// What is kept, and the seam to where: a file (sqlite/) or a server that many hosts share
// (postgres/).

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace forms {

/// The database could not be read or written: full, gone, locked for too long. What was under way
/// may have been kept all the same.
struct storage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The database works and does not take this; other things it would.
struct storage_refused : storage_error {
    using storage_error::storage_error;
};

struct endpoint {
    std::string  id       = {};
    bool         active   = true;
    std::string  made_at  = {};
    std::int64_t revision = 0;  ///< Grows with every change of any endpoint.
};

/// What a form was sent. `fields` is a JSON array of [name, value] in the order of arrival, so that
/// two submissions are the same content if and only if these texts are the same.
struct submission {
    std::string                id          = {};
    std::string                endpoint_id = {};
    std::string                received_at = {};
    std::string                fields      = {};
    std::int64_t               field_count = 0;
    std::optional<std::string> idempotency_key = {};
    std::int64_t               seq = 0;  ///< Its place in the order of keeping, once it was read.
};

/// What became of a submission that was handed in.
enum class receipt { stored, replayed, conflicting };

/// A submission to keep, and what became of it. If its idempotency key was used before at this
/// endpoint, nothing is kept: `given` becomes the original for the same content, and stays for
/// other content. A unique constraint decides, so two at once cannot both be first.
struct keeping {
    submission given   = {};
    receipt    outcome = receipt::stored;
};

/// What is written together.
struct batch {
    std::vector<keeping*>     kept      = {};  ///< With a place in the queue of deliveries.
    std::vector<std::int64_t> delivered = {};  ///< The seqs of those that leave that queue.
};

/// A page of submissions, the oldest first.
struct page {
    std::vector<submission> found = {};
    bool                    more  = false;

    /// It ends early when its fields are this long together: so much is held in memory at once.
    static constexpr std::int64_t most_bytes = std::int64_t{8} << 20;
};

/// One connection to the database, for one thread at a time. Every function throws storage_error,
/// and what it wrote is on the disk when it returns.
class records {
public:
    using time_point = std::chrono::steady_clock::time_point;

    virtual ~records() = default;

    /// When what follows fails at the latest, where the database may be out of reach.
    virtual void allow_until(time_point) {}

    /// All of it in one transaction. In the order in which they are kept, submissions can be seen.
    virtual void write(const batch& all) = 0;

    /// False if the id is taken.
    virtual bool create_endpoint(const endpoint& made) = 0;

    /// False if there is none.
    virtual bool change_endpoint(std::string_view id, bool active) = 0;

    /// All that changed after `revision`, in the order of their changes.
    virtual std::vector<endpoint> endpoints_since(std::int64_t revision) = 0;

    /// Up to `most` behind `after` (empty: from the first), fewer if they are long. None if `after`
    /// is no submission of this endpoint.
    virtual std::optional<page> submissions_of(std::string_view endpoint_id, std::string_view after,
                                               std::int64_t most) = 0;

    /// Submissions that wait for delivery, the oldest first, for this process alone: as long as the
    /// turn lasts, or for `storage::claim_lasts` where there are no turns.
    virtual std::vector<submission> claim(std::int64_t most) = 0;
};

/// A database.
class storage {
public:
    /// After this a delivery that was claimed and not reported is free again.
    static constexpr auto claim_lasts = std::chrono::seconds(10);

    virtual ~storage() = default;

    /// How long one round of work may take, and how long one may wait for its round.
    [[nodiscard]] virtual std::chrono::milliseconds patience() const noexcept = 0;

    virtual std::unique_ptr<records> open() = 0;

    /// The right to deliver, until it is destroyed; none where claims do without.
    virtual std::shared_ptr<void> delivery_turn() { return nullptr; }
};

/// Makes the tables if there are none, any number of processes at once. Both throw storage_error.
std::unique_ptr<storage> sqlite_storage(const std::string& path);
std::unique_ptr<storage> postgres_storage(const std::string& conninfo);

/// Whether a database of this name is one of PostgreSQL: a URL.
[[nodiscard]] inline bool names_postgres(std::string_view database) noexcept
{
    return database.starts_with("postgresql://") || database.starts_with("postgres://");
}

/// Whether libpq can read it.
[[nodiscard]] bool is_conninfo(const std::string& conninfo);

}  // namespace forms
