// SPDX-License-Identifier: BSL-1.0
#pragma once

// As much of a database as this server needs, the same of SQLite and of PostgreSQL: statements with
// $1, $2 …, transactions, and the two things of Weir that belong into one.

#include "settings.hpp"

#include "weir/key.hpp"
#include "weir/policy/calendar_caps.hpp"
#include "weir/time.hpp"
#include "weir/token_use.hpp"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace signup {

/// The database could not be read or written. What was under way may have been kept all the same.
struct storage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What a $n stands for.
using value = std::variant<std::int64_t, std::string_view>;

/// One row of an answer; NULL is none.
struct row {
    std::vector<std::optional<std::string>> cells = {};

    [[nodiscard]] bool         has(std::size_t n) const { return cells.at(n).has_value(); }
    [[nodiscard]] std::string  text(std::size_t n) const { return cells.at(n).value_or(""); }
    [[nodiscard]] std::int64_t integer(std::size_t n) const;
};

using rows = std::vector<row>;

/// For one thread at a time. Every function throws storage_error; after that the connection is of
/// no use any more.
class connection {
public:
    virtual ~connection() = default;

    /// False once the other side has ended it, as far as can be seen without asking.
    [[nodiscard]] virtual bool usable() const noexcept = 0;

    /// By the clock that all processes on this database share.
    virtual weir::instant now() = 0;

    virtual rows run(const std::string& sql, std::initializer_list<value> values) = 0;

    /// Between these two, all of it or nothing. A connection that is destroyed rolls back.
    virtual void begin()    = 0;
    virtual void commit()   = 0;
    virtual void rollback() = 0;

    /// Within a transaction.
    virtual weir::placement place(weir::instant at) = 0;
    virtual weir::token_use spend(const weir::key& token, weir::instant expires,
                                  weir::instant at) = 0;
    virtual void            one_at_a_time()         = 0;

    /// What a SELECT ends with so that nobody waits for rows that others hold.
    [[nodiscard]] virtual std::string_view skipping_locked() const noexcept = 0;

    /// Deletes what is only of use for a while.
    virtual void sweep(weir::instant at) = 0;
};

class storage {
public:
    virtual ~storage()                         = default;
    virtual std::unique_ptr<connection> open() = 0;
};

/// Both make the tables if there are none, any number of processes at once. They throw
/// storage_error and std::invalid_argument.
std::unique_ptr<storage> sqlite_storage(const settings& chosen);
std::unique_ptr<storage> postgres_storage(const settings& chosen);

/// The tables, as both databases read them. Instants are microseconds since 1970.
[[nodiscard]] std::initializer_list<const char*> tables() noexcept;

}  // namespace signup
