// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tokens of forms that were used, each once, by the processes that share a file: a token is spent
// in the transaction of the row that it was used for, and goes back with it.
//
//     BEGIN IMMEDIATE, INSERT the row …
//     if (spent.spend(db, token.id, token.expires) != weir::token_use::first) ROLLBACK …

#include <cstddef>

#include "weir/key.hpp"
#include "weir/time.hpp"
#include "weir/token_use.hpp"

struct sqlite3;

namespace weir::sqlite {

/// Thread-safe, one connection being used by one thread at a time.
class spent_tokens {
public:
    /// Makes what is missing in the file; `by` must then be outside of a transaction. Throws
    /// std::invalid_argument if `most` is out of range and for a file that cannot be written.
    explicit spent_tokens(sqlite3* by, const spent_token_options& options = {});

    /// `first` for one of all transactions with `id` that commit. `failed` outside of a
    /// transaction, or if a statement failed: roll back then. O(tokens of a part), some hundred.
    [[nodiscard]] token_use spend(sqlite3* within, const key& id, instant expires,
                                  instant at = weir::now());

private:
    std::size_t most_;
};

}  // namespace weir::sqlite
