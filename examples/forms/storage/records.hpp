// SPDX-License-Identifier: BSL-1.0
#pragma once

// The tables and what is done with them. Everything here runs inside a worker's transaction and
// throws storage_error; none of it is thread-safe beyond its connection.

#include "storage/sqlite.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forms {

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
};

/// What became of a submission that was handed in.
enum class receipt { stored, replayed, conflicting };

/// A page of submissions, the oldest first.
struct page {
    std::vector<submission> found = {};
    bool                    more  = false;
};

void create_tables(connection& on);

/// False if the id is taken.
bool create_endpoint(connection& on, const endpoint& made);

/// False if there is none.
bool change_endpoint(connection& on, std::string_view id, bool active);

/// All that changed after `revision`, in the order of their changes.
std::vector<endpoint> endpoints_since(connection& on, std::int64_t revision);

/// Keeps a submission and queues its delivery. If its idempotency key was used before at this
/// endpoint, nothing is kept: `given` becomes the original for the same content, and stays for
/// other content. The unique constraint decides, so two at once cannot both be first.
receipt keep(connection& on, submission& given);

/// Up to `most` behind `after` (empty: from the first), fewer if they are long. None if `after` is
/// no submission of this endpoint.
std::optional<page> submissions_of(connection& on, std::string_view endpoint_id,
                                   std::string_view after, std::int64_t most);

/// The submissions that wait for delivery, the oldest first.
std::vector<submission> undelivered(connection& on, std::int64_t most);

void mark_delivered(connection& on, const std::vector<submission>& done);

}  // namespace forms
