// SPDX-License-Identifier: BSL-1.0
#pragma once

// Statements on a connection, and within a transaction, of the caller's own: what calendar and
// spent_tokens have in common, not for users. Needs no header of libpq.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/key.hpp"

struct pg_conn;
struct pg_result;

namespace weir::postgres::within {

struct clear {
    void operator()(pg_result* made) const noexcept;
};
using result = std::unique_ptr<pg_result, clear>;

/// Runs `sql`; null if there were no rows to get, whatever the reason. `$n` are the parameters.
[[nodiscard]] result ask(pg_conn* by, const std::string& sql,
                         const std::vector<std::string>& parameters);

/// Whether the caller has begun a transaction that still stands.
[[nodiscard]] bool in_transaction(const pg_conn* by) noexcept;

/// Finds `part` of the schema in the version that this program knows, or makes it with `text`.
/// Throws std::invalid_argument for what a caller must set right, `unreachable` for the rest.
void settle(pg_conn* by, const std::string& schema, const std::string& part, std::string_view text,
            bool makes);

/// As PostgreSQL spells a uuid.
[[nodiscard]] std::string uuid(const key& of);

}  // namespace weir::postgres::within
