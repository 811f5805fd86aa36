// SPDX-License-Identifier: BSL-1.0
#pragma once

// One connection to a file of counters: a part of the store, not for users. Needs no header of
// SQLite; the codes that come back are SQLite's own, 0 being all is well.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/key.hpp"
#include "weir/remote/digest.hpp"
#include "weir/remote/row.hpp"
#include "weir/sqlite/spending.hpp"
#include "weir/time.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace weir::sqlite {

/// What survives what (docs/sqlite.md).
enum class durability : std::uint8_t {
    process,  ///< A crash of any process loses nothing; one of the machine the last moments.
    machine,  ///< A crash of the machine loses nothing either; each group of asks waits for the
              ///< disk.
};

/// How to reach a file.
struct place {
    std::string               path        = {};
    sqlite::durability        survives    = durability::process;
    std::chrono::milliseconds patience = {};  ///< How long to wait for others while it is opened.
    remote::hash_bytes fingerprint     = {};  ///< Tells the secret of the keys, and not what it is.
};

/// Not thread-safe. No function but the constructor throws or waits for a lock.
class connection {
public:
    /// Opens the file, makes what is missing in it, waits for others who do the same. Throws
    /// std::invalid_argument for a file that cannot be opened, written or understood.
    explicit connection(const place& where);

    /// Whether the file was made with another secret; it is of this one's from now on.
    [[nodiscard]] bool secret_changed() const noexcept { return secret_changed_; }

    /// Whether another file has taken the path, or none is there any more.
    [[nodiscard]] bool moved() const noexcept;

    int  begin_looking() noexcept;  ///< A snapshot; waits for nobody.
    int  begin_changing() noexcept;  ///< The right to write, or SQLITE_BUSY.
    int  commit() noexcept;
    void roll_back() noexcept;

    /// False outside of a transaction, also when SQLite gave one up by itself.
    [[nodiscard]] bool in_transaction() const noexcept;

    /// One ask, within a transaction. A fault of one ask leaves the others alone.
    int run(const step& asked, outcome& said) noexcept;

    /// Deletes what has been recovered since `cutoff` among the next `rows` rows after `from`,
    /// which moves on, and round at the end. Within a transaction.
    int sweep(key& from, std::size_t rows, instant cutoff) noexcept;

    /// The rows of one guard's lockouts. Throws std::bad_alloc.
    int marked(std::int64_t mark, std::vector<remote::seen_row>& rows);

private:
    struct close { void operator()(sqlite3* db) const noexcept; };
    struct finalize { void operator()(sqlite3_stmt* text) const noexcept; };
    using statement = std::unique_ptr<sqlite3_stmt, finalize>;

    struct spend_statement {
        const spend_text* text = nullptr;
        statement         query;
        std::vector<int>  places;  // of the text's numbers among its parameters
    };

    [[noreturn]] void fail(const std::string& what) const;

    int  set_up(const place& where);
    int  settle_layout(const place& where);
    int  check_meta(const place& where, bool& settled);
    int  record_secret(const remote::hash_bytes& fingerprint);
    int  execute(const char* sql) noexcept;
    int  prepare(const char* sql, statement& made) noexcept;
    void prepare_all();

    int              look(const step& asked, outcome& said) noexcept;
    int              forget(const step& asked) noexcept;
    int              spend(const step& asked, outcome& said) noexcept;
    int              keep(const key& who, sqlite3_stmt* made) noexcept;
    spend_statement* spending_by(const spend_text& text);

    std::unique_ptr<sqlite3, close> db_;
    std::string                     path_;
    bool                            secret_changed_ = false;

    statement begin_looking_, begin_changing_, commit_, roll_back_;
    statement look_, keep_, forget_, sweep_, sweep_end_;
    std::vector<spend_statement> spends_;
};

}  // namespace weir::sqlite
