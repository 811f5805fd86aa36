// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which budget a client is told, of all that its request met, and how.
// X-RateLimit-*: no standard, but what most clients read. RateLimit and RateLimit-Policy:
// draft-ietf-httpapi-ratelimit-headers-11, a draft still, hence by name only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/http/refusal.hpp"
#include "weir/time.hpp"

namespace weir::http {

/// How a budget is written.
enum class quota_form : std::uint8_t {
    x_ratelimit,  ///< X-RateLimit-Limit, -Remaining and -Reset.
    draft_11,     ///< RateLimit-Policy and RateLimit of the draft's revision 11.
    both,
};

/// What one limit has to tell after it decided. A value.
struct budget {
    std::shared_ptr<const std::string> name  = {};  ///< Of the limit; for the draft.
    std::uint64_t                      limit = 0;   ///< The most that can be left.
    std::uint64_t                      left  = 0;   ///< This request counted; 0 on a refusal.
    std::uint64_t                      quota = 0;   ///< Units a window.

    /// Zero for a limit of requests in progress, which has no window and no reset.
    duration                window = {};
    std::optional<duration> reset  = {};  ///< Until the whole of it is back, if nobody spends.
    quota_form              form   = quota_form::x_ratelimit;
};

/// The budget of one exchange: the one with the least left, of equal ones the first, until a limit
/// refuses: then that limit's own or, if it does not report, none. Not thread-safe.
class quota_note {
public:
    /// A limit admitted and reports.
    void admitted(const budget& one);

    /// A limit refused, with a budget if it reports.
    void refused(std::optional<budget> one) noexcept;

    [[nodiscard]] const std::optional<budget>& told() const noexcept { return told_; }

    /// The header fields; none if nothing is to be told. Whole seconds, rounded up, and at least 1
    /// while anything is counted.
    [[nodiscard]] std::vector<refusal_header> fields() const;

private:
    std::optional<budget> told_;
    bool                  settled_ = false;
};

}  // namespace weir::http
