// SPDX-License-Identifier: BSL-1.0
#pragma once

// The log of a dry run: what would have been refused, ten lines a second, and how many more.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/http/visit.hpp"
#include "weir/key.hpp"
#include "weir/time.hpp"

namespace weir::http {

/// A refusal that is not made.
struct would_be_refusal {
    int              status  = 429;
    std::string_view reason  = {};  ///< The text it would have had.
    std::string_view matched = {};  ///< What of the request it goes by, for people to read.
};

/// How many would have been refused, since the log was made.
struct shadow_figures {
    std::uint64_t seen    = 0;  ///< All; logged + skipped.
    std::uint64_t logged  = 0;  ///< Those with a line of their own.
    std::uint64_t skipped = 0;  ///< Those that were counted only.

    friend constexpr bool operator==(const shadow_figures&, const shadow_figures&) = default;
};

/// One of those that would be refused most.
struct most_refused_entry {
    key           who     = {};  ///< `shadow_log::digest(matched)`.
    std::uint64_t times   = 0;   ///< At least the truth,
    std::uint64_t too_far = 0;   ///< and at most so far over it.
};

/// Where a filter in dry run tells what it would have refused. Lines go to a sink without a line
/// feed; it may be called from any thread, and from several at once. Thread-safe. Memory is
/// bounded: a list of `most_listed` digests, no value of a request.
class shadow_log {
public:
    static constexpr std::uint32_t lines_a_second = 10;
    static constexpr std::size_t   most_listed    = 32;

    /// Longer values of a request are cut in a line, to so many bytes.
    static constexpr std::size_t longest_value = 512;

    using sink = std::function<void(std::string_view line)>;

    /// `name` is that of the filter, `category` its kind ("limit", "uri_block" …).
    shadow_log(std::string name, std::string category, sink to);

    /// Counts a refusal that is not made, and writes a line if there were not ten in this second of
    /// the clock:
    ///
    ///     dry run, the request would have been refused category="limit" location="api" status=429
    ///     reason=Plugin limit, exceed limit 11/10 matched="1.2.3.4" client_ip="1.2.3.4"
    ///     method="GET" uri=/api/items request_id="" skipped=0
    ///
    /// (one line), where `skipped` says how many had none since the line before. No byte of a
    /// request can end a line or look like another field: all that is not printable ASCII is
    /// written as \xNN, as are `"` and `\` within quotes and blanks in the uri.
    void would_refuse(const visit& of, const would_be_refusal& refusal, instant at);

    /// Writes the line that tells those skipped since the last line, if there are any. For a timer,
    /// once a second, and at shutdown: else a count that no refusal follows would never be told.
    void flush();

    [[nodiscard]] shadow_figures figures() const;

    /// The values that would be refused most, the most first.
    [[nodiscard]] std::vector<most_refused_entry> most_refused() const;

    /// What stands for a matched value in `most_refused`; another one in each process.
    [[nodiscard]] key digest(std::string_view matched) const noexcept { return digest_(matched); }

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::string& category() const noexcept { return category_; }

private:
    void note(const key& who) noexcept;
    bool has_line(std::string_view matched, instant at, std::uint64_t& skipped);

    std::string  name_;
    std::string  category_;
    sink         to_;
    weir::digest digest_;

    mutable std::mutex mutex_;
    std::int64_t       second_  = INT64_MIN;
    std::uint32_t      lines_   = 0;  // in that second
    std::uint64_t      untold_  = 0;  // skipped since the last line
    shadow_figures     figures_ = {};

    std::array<most_refused_entry, most_listed> most_ = {};
};

}  // namespace weir::http
