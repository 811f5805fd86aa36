// SPDX-License-Identifier: BSL-1.0
#pragma once

// Limits and restrictions as an operator writes them: one table [plugins.NAME] each.
// docs/configuration.md has every key with its default and what is allowed.

#include <optional>
#include <string_view>

#include "weir/config/document.hpp"
#include "weir/http/counters.hpp"
#include "weir/http/limit_options.hpp"
#include "weir/http/restriction.hpp"

namespace weir::config {

// Each reads one table and asks for all of its keys. None if anything is wrong: what it is, is then
// among the errors of the document. O(size of the table). Not thread-safe, as a document is not.

/// category = "limit". The limit has the name of the table.
[[nodiscard]] std::optional<http::limit_options> read_limit(const table& from);

/// category = "ip_restriction", and so on.
[[nodiscard]] std::optional<http::ip_restriction_options> read_ip_restriction(const table& from);
[[nodiscard]] std::optional<http::ua_restriction_options> read_ua_restriction(const table& from);
[[nodiscard]] std::optional<http::referer_restriction_options>
read_referer_restriction(const table& from);
[[nodiscard]] std::optional<http::ja4_restriction_options> read_ja4_restriction(const table& from);
[[nodiscard]] std::optional<http::uri_block_options>       read_uri_block(const table& from);

/// max_keys, max_inflight, sketch_rows and sketch_columns of a table that may have other keys. A
/// wrong one is told and answered with its default.
[[nodiscard]] http::counters_options read_counters(const table& from);

/// Adds the warning that a limit by fingerprint is on a server without `ja4 = true`, if this one
/// is by fingerprint. `from` is its table.
void warn_without_ja4(const table& from, const http::limit_options& limit, std::string_view server);

/// The same of a ja4_restriction.
void warn_without_ja4(const table& from, const http::ja4_restriction_options& rule,
                      std::string_view server);

}  // namespace weir::config
