// SPDX-License-Identifier: BSL-1.0
#pragma once

// One connection to a database of counters: a part of the store, not for users. Needs no header of
// libpq.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "weir/remote/digest.hpp"
#include "weir/remote/row.hpp"
#include "weir/remote/trip.hpp"
#include "weir/remote/wire.hpp"
#include "weir/time.hpp"

struct pg_conn;
struct pg_result;

namespace weir::postgres {

enum class type : std::uint32_t;

/// What a crash of the database server forgets (docs/postgresql.md).
enum class durability : std::uint8_t {
    logged,    ///< Nothing that was committed; replicas have the counters too.
    unlogged,  ///< Everything; faster, and replicas have none.
};

/// How to reach a schema of counters, and what is asked there.
struct place {
    std::string          conninfo        = {};
    std::string          schema          = "weir";
    postgres::durability survives        = durability::logged;
    bool                 makes           = true;  ///< Make the schema if it is missing.
    remote::hash_bytes   fingerprint     = {};    ///< Tells the secret of the keys, not what it is.
    std::string          set_statement   = {};
    std::string          sweep_statement = {};
    std::int64_t         sweep_blocks    = 16;
    duration             keep            = {};  ///< How long a row outlives its recovery.
    /// Sent by name on connections that lead to the server itself.
    std::vector<const remote::manner*> named = {};
};

/// The database cannot be reached now; it may be later.
class unreachable : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Used by one thread at a time.
class connection final : public remote::wire {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Connects, and makes what is missing or checks what is there. Blocks until `until` at most,
    /// and while names are looked up. Throws `unreachable`; std::invalid_argument for a schema that
    /// is not there and may not be made, or is of a newer version.
    connection(const place& where, time_point until);
    ~connection() override;

    /// Whether the schema was last used with another secret; it is of this one's from now on.
    [[nodiscard]] bool secret_changed() const noexcept { return secret_changed_; }

    /// The rows of one guard's lockouts, for an operator. Blocks until `until` at most. Throws
    /// `unreachable`, std::bad_alloc.
    std::vector<remote::seen_row> marked(std::int64_t mark, time_point until);

    bool               usable() noexcept override;
    bool               send(const remote::trip& asked) noexcept override;
    progress           advance(remote::trip& asked) noexcept override;
    [[nodiscard]] int  descriptor() const noexcept override;
    [[nodiscard]] bool writes() const noexcept override { return writes_; }

private:
    struct close {
        void operator()(pg_conn* db) const noexcept;
    };
    struct clear {
        void operator()(pg_result* made) const noexcept;
    };
    using result = std::unique_ptr<pg_result, clear>;

    void              connect(time_point until);
    void              settle_schema(time_point until);
    void              make_schema(time_point until);
    void              settle_functions(time_point until);
    void              settle_secret(time_point until);
    void              prepare_named(time_point until);
    result            run(const std::string& sql, time_point until);
    result            finish(time_point until);
    void              wait(bool writing, time_point until);
    std::string       look_up(const std::string& sql, time_point until);
    [[noreturn]] void fail(const std::string& what, const pg_result* made = nullptr) const;

    bool flush() noexcept;
    void write_numbers(const remote::row& of);
    void write_rows(const remote::trip& asked);
    bool send_asks(const remote::trip& asked) noexcept;
    bool send_single(const remote::row& asked) noexcept;
    bool send_set(const remote::trip& asked) noexcept;
    bool send_sweep() noexcept;
    bool send_statement(const std::string& sql, std::array<type, 3> types, int count) noexcept;
    bool send_named(std::size_t statement) noexcept;

    progress judge(const pg_result* made) noexcept;
    bool     read(const pg_result* made, remote::trip& asked) noexcept;
    bool     read_row(const pg_result* made, int at, remote::trip::part& of) noexcept;
    bool     read_array(const pg_result* made, remote::trip& asked) noexcept;
    bool     read_sweep(const pg_result* made) noexcept;

    std::unique_ptr<pg_conn, close> db_;
    const place*                    place_;
    bool                            secret_changed_ = false;
    bool                            writes_         = false;
    progress                        come_           = progress::busy;
    std::int64_t                    swept_to_       = 0;
    std::array<std::string, 3>      parameters_;  // of the statement under way
    std::vector<std::string>        names_;       // of place_->named; none behind a pooler
};

/// The texts name the schema `weir`, so that they can be run as they are; this one's is another.
[[nodiscard]] std::string renamed(std::string text, const std::string& schema);

/// The text that makes the schema, as `place` wants it.
[[nodiscard]] std::string schema_text(const place& where);

}  // namespace weir::postgres
