// SPDX-License-Identifier: BSL-1.0
#pragma once

// A question to a shared store as plain data, and what comes back: what a statement or a packet
// carries, whatever the policy.

#include <array>
#include <cstdint>
#include <string>

#include "weir/key.hpp"
#include "weir/store.hpp"
#include "weir/time.hpp"

namespace weir::remote {

/// Whole numbers of a policy's state, whose meaning the policy's own text knows.
using words = std::array<std::int64_t, 3>;

/// How a question is put: made once by a store, and compared by address. Rows that are put in the
/// same manner share a round trip.
struct manner {
    std::string statement = {};  ///< In the store's language, for any number of rows.
    std::string single    = {};  ///< For a row alone, where that is cheaper.
    std::string policy    = {};  ///< The name of the policy's text; empty where none runs.
};

struct row {
    const remote::manner* manner = nullptr;
    key                   who    = {};
    verb                  act    = verb::spend;
    std::int64_t          most   = 0;  ///< The limit, in what the policy's text counts.
    std::int64_t          length = 0;  ///< The window; 0 where the text needs none.
    std::int64_t          cost   = 0;
    std::int64_t          times  = 1;  ///< Callers who each want `cost`.
    std::int64_t          lapses = 0;

    /// Whether one statement can spend for both, one after the other.
    [[nodiscard]] bool merges_with(const row& other) const noexcept
    {
        return act == verb::spend && other.act == verb::spend && manner == other.manner &&
               most == other.most && length == other.length && cost == other.cost;
    }
};

struct outcome {
    bool         found   = false;  ///< Whether there is a row; else the state is untouched.
    bool         fresh   = false;  ///< The row was made just now: the policy says how many fitted.
    std::int64_t callers = 1;      ///< Merged into the row.
    std::int64_t granted = 0;      ///< Of those; not of a fresh row.
    words        after   = {};
    instant      at      = {};  ///< The store's clock when it ran the statement.
};

/// A row as an operator sees it.
struct seen_row {
    key           who   = {};
    remote::words words = {};
    instant       at    = {};  ///< The store's clock.
};

}  // namespace weir::remote
