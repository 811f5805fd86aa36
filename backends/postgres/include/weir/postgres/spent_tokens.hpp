// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tokens of forms that were used, each once, in whatever number of processes: a token is spent in
// the transaction of the row that it was used for, and goes back with it.
//
//     BEGIN, INSERT the row …
//     if (spent.spend(connection, token.id, token.expires) != weir::token_use::first) ROLLBACK …

#include <string>

#include "weir/key.hpp"
#include "weir/time.hpp"
#include "weir/token_use.hpp"

struct pg_conn;

namespace weir::postgres {

struct spent_tokens_options {
    std::size_t most        = 100'000;  ///< See weir::spent_token_options.
    std::string schema      = "weir";
    bool        make_schema = true;  ///< Make what is missing in it.
};

/// Thread-safe, one connection being used by one thread at a time.
class spent_tokens {
public:
    /// Looks at the server through `by`, which must be outside of a transaction. Throws as
    /// `postgres::calendar` does, and std::invalid_argument if `most` is out of range.
    explicit spent_tokens(pg_conn* by, spent_tokens_options options = {});

    /// `first` for one of all transactions with `id` that commit: a second one waits for the end of
    /// the first. `failed` outside of a transaction, or if the statement failed. One round trip;
    /// O(tokens of a part), some hundred.
    [[nodiscard]] token_use spend(pg_conn* within, const key& id, instant expires,
                                  instant at = weir::now());

private:
    std::size_t most_;
    std::string schema_;
};

}  // namespace weir::postgres
