// SPDX-License-Identifier: BSL-1.0
#pragma once

// A limit as an operator configures it: what it counts by, how much, and what who is over it is
// told. docs/limits.md has all options.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "weir/extract/cidr.hpp"
#include "weir/extract/cookie.hpp"
#include "weir/extract/header.hpp"
#include "weir/extract/query.hpp"
#include "weir/http/answer.hpp"
#include "weir/http/counters.hpp"
#include "weir/http/limit_options.hpp"
#include "weir/http/shadow_log.hpp"
#include "weir/http/visit.hpp"
#include "weir/time.hpp"

namespace weir::http {

/// Immutable, hence thread-safe. It keeps its counts alive and borrows its log.
///
/// A request over the limit is answered with `status` and the body
/// `Plugin limit, exceed limit <count>/<max>` (the count with this request, as a decimal where the
/// policy estimates), one without a key under missing_key = reject, or with one that cannot be
/// counted, with 400. A shared store that is away and refuses is a 503 without Retry-After.
class limit {
public:
    /// Throws std::invalid_argument that names the option, its value and what is allowed. `log` is
    /// for dry_run, which without one is silent.
    limit(limit_options options, counters& where, shadow_log* log = nullptr);
    limit(const limit&)            = delete;
    limit& operator=(const limit&) = delete;
    ~limit();

    /// None: go on. The places that it took and what it has to tell go into the passage. An
    /// admission allocates nothing in a store of the process. A store on a clock of its own leaves
    /// the instant alone, and is waited for up to its deadline.
    [[nodiscard]] std::optional<answer> admit(const visit& who, passage& through, instant at) const;

    using told = std::function<void(std::optional<answer>)>;

    /// As `admit`, for a server that must not wait: `done` is called once, here or on a thread of
    /// the store. Visit, passage and limit stay until then. Throws std::bad_alloc before anything
    /// is asked.
    void admit_then(const visit& who, passage& through, told done) const;

    /// Whether `admit` may wait, so that a server that must not has to take `admit_then`.
    [[nodiscard]] bool answers_later() const noexcept;

    /// What its counts take of this process's memory, room for keys that never came included. A
    /// store that is shared by name tells that of all of its limits, or 0.
    [[nodiscard]] std::size_t bytes() const;

    [[nodiscard]] const limit_options& options() const noexcept { return options_; }
    [[nodiscard]] limit_step           step() const noexcept { return options_.step; }

    /// What is told of the tag in a refusal: "the header X-Api-Key".
    [[nodiscard]] std::string key_text() const;

private:
    /// What a request is counted by.
    class sample;
    friend class sample;

    /// So that a text finds a string.
    struct text_hash : std::hash<std::string_view> {
        using is_transparent = void;
    };

    void                       read_allow();
    std::vector<std::uint64_t> read_overrides();
    [[nodiscard]] std::string  override_key(const std::string& text) const;
    [[nodiscard]] rate_plan    plan(std::vector<std::uint64_t> maxima) const;
    void make_places(counters& where, const std::vector<std::uint64_t>& maxima);

    [[nodiscard]] bool        allows(const visit& who) const noexcept;
    [[nodiscard]] std::size_t max_of(const sample& by) const noexcept;

    [[nodiscard]] std::optional<answer> enter(const visit& who, passage& through, const sample& by,
                                              instant at) const;
    [[nodiscard]] std::optional<answer> conclude(const visit& who, passage& through,
                                                 const any_limiter::told& said, instant at) const;
    [[nodiscard]] std::optional<answer> reject(const visit& who, const sample& by,
                                               instant at) const;
    [[nodiscard]] std::optional<answer> refuse(const visit& who, passage& through,
                                               const any_limiter::told& said,
                                               std::optional<budget> left, instant at) const;
    [[nodiscard]] answer                answer_of(const any_limiter::told& said) const;
    [[nodiscard]] std::string           over_text(const any_limiter::told& said) const;
    [[nodiscard]] budget                budget_of(const any_limiter::told& said) const;
    void shadow(const visit& who, int status, std::string_view reason, std::string_view matched,
                instant at) const;

    limit_options                                       options_;
    std::shared_ptr<const std::string>                  name_;
    std::variant<std::monostate, header, cookie, query> key_;
    std::vector<cidr>                                   allow_;

    std::unordered_map<std::string, std::size_t, text_hash, std::equal_to<>> overrides_;

    std::unique_ptr<any_limiter>           rate_;
    std::vector<std::shared_ptr<inflight>> places_;  // of max, then of each override
    std::vector<std::uint32_t>             most_;    // of each of them
    shadow_log*                            log_ = nullptr;
};

}  // namespace weir::http
