// SPDX-License-Identifier: BSL-1.0
#pragma once

// How many at once: occupancy, not rate. Nothing here has a window or reads a clock. A place is
// taken by whoever is admitted, and is free again when their permit goes: by return and by throw
// alike. A refusal takes nothing.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "weir/decision.hpp"
#include "weir/key.hpp"

namespace weir {

/// How many may be inside at once. A limit of 0 refuses everything. Aligned to be one atomic word,
/// so that both limits change in one step.
struct alignas(8) inflight_options {
    static constexpr std::uint32_t unlimited = ~std::uint32_t{0};

    std::uint32_t per_key  = unlimited;  ///< Places of one key; by default only the total counts.
    std::uint32_t in_total = 1024;       ///< Places of all keys; memory is taken for so many.

    friend constexpr bool operator==(inflight_options, inflight_options) = default;
};

/// Which of the two limits the figures of a decision are of.
enum class inflight_bound : std::uint8_t { per_key, in_total };

class inflight;

/// What `inflight::enter` gives: a place, or a refusal. Move-only; the place is given back exactly
/// once, by `release`, by the destructor, or when another permit is moved onto this one. It must
/// not outlive the inflight it came from. Not thread-safe, but any thread may be the one to drop
/// it.
class [[nodiscard]] permit {
public:
    /// Whether it holds a place: false for a refusal, and once released or moved from.
    explicit operator bool() const noexcept { return place_ != nullptr; }

    /// Gives the place back now; nothing happens if there is none.
    void release() noexcept { place_.reset(); }

    /// What was decided on entering; it stays what it was after a release. `limit` and `left` are
    /// those of the limit that left less room (the key's on a tie), and `bound` says which that is.
    /// A refusal has no retry_after, since nobody knows when a place comes free. `window`,
    /// `reset_after` and `at` are zero: there is no clock.
    [[nodiscard]] weir::decision decision() const noexcept { return made_; }
    [[nodiscard]] inflight_bound bound() const noexcept { return bound_; }

private:
    friend class inflight;
    struct leave {
        key  who = {};
        void operator()(inflight* from) const noexcept;
    };
    using place = std::unique_ptr<inflight, leave>;  // owns a place in it, not the inflight

    permit(place held, const weir::decision& made, inflight_bound bound) noexcept
        : place_(std::move(held)), made_(made), bound_(bound)
    {
    }

    place          place_;
    weir::decision made_;
    inflight_bound bound_;
};

/// At most `per_key` places of one key and `in_total` of all are held at any moment, whatever the
/// number of threads, and nobody is refused while a place is free: looking and taking are one step,
/// done while the key's bucket is locked. Thread-safe. Memory is taken by the constructor only, 88
/// bytes for each place in total. Must outlive its permits; decisions borrow its name.
class inflight {
public:
    /// Its policy id in the digest layout; the window there is 0.
    static constexpr std::uint8_t id = 64;

    /// Throws std::invalid_argument for a name of more than 65,535 bytes, and std::bad_alloc.
    explicit inflight(std::string_view name, const inflight_options& limits = {});

    inflight(const inflight&)            = delete;  // permits point to it
    inflight& operator=(const inflight&) = delete;

    /// Takes a place if one is free for this key. Never throws, never allocates. Constant time on
    /// average, the subject's digest apart; it waits only for another decision in the same bucket.
    permit enter(const subject& who) noexcept { return enter(digest(who)); }
    permit enter(const key& who) noexcept;

    /// Places held now, by everybody or by one: gauges, which may be past when they are read.
    [[nodiscard]] std::uint32_t held() const noexcept { return held_.load(relaxed); }
    [[nodiscard]] std::uint32_t held(const subject& who) const noexcept
    {
        return held(digest(who));
    }
    [[nodiscard]] std::uint32_t held(const key& who) const noexcept;

    /// Other limits for those who enter from now on; who is inside stays. False, and nothing
    /// changes, for a total above the one given at construction, which memory was taken for.
    bool set_limits(const inflight_options& limits) noexcept;

    [[nodiscard]] inflight_options   limits() const noexcept { return limits_.load(relaxed); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::size_t        bytes() const noexcept;

    /// The key of a subject, for callers who enter several times.
    [[nodiscard]] key digest(const subject& who) const noexcept { return digest_(who); }

private:
    friend class permit;

    static constexpr std::uint32_t none    = ~std::uint32_t{0};
    static constexpr auto          relaxed = std::memory_order_relaxed;

    /// Who is inside. `next` is an index into `more_`.
    struct holder {
        key           who  = {};
        std::uint32_t held = 0;  // 0: not in use
        std::uint32_t next = none;
    };
    /// The holders of one hash: the first stands here, the others, seldom any, in `more_`.
    struct alignas(64) bucket {
        holder     first;
        std::mutex mutex;
    };
    /// What an ask met and left behind.
    struct standing {
        inflight_options limits   = {};
        std::uint32_t    of_key   = 0;
        std::uint32_t    of_all   = 0;
        bool             admitted = false;
    };

    standing take(const key& who) noexcept;
    bool     take_of_all(standing& seen) noexcept;
    void     leave(const key& who) noexcept;
    permit   told(const key& who, const standing& seen) noexcept;

    [[nodiscard]] std::size_t buckets() const noexcept { return std::max<std::size_t>(places_, 1); }
    [[nodiscard]] bucket&     bucket_of(const key& who) const noexcept;
    [[nodiscard]] holder*     find(bucket& in, const key& who) const noexcept;
    holder&                   begin(bucket& in, const key& who) noexcept;
    void                      end(bucket& in, holder& gone) noexcept;

    std::string                   name_;
    weir::digest                  digest_;
    std::uint32_t                 places_;  // the most that in_total can be
    std::atomic<inflight_options> limits_;
    std::unique_ptr<bucket[]>     buckets_;
    std::unique_ptr<holder[]>     more_;

    alignas(64) std::atomic<std::uint32_t> held_{0};
    std::mutex    unused_mutex_;  // locked after a bucket's, never before
    std::uint32_t unused_ = 0;    // the first holder in `more_` that no bucket has
};

// ---------------------------------------------------------------------------------------------

inline void permit::leave::operator()(inflight* from) const noexcept { from->leave(who); }

inline inflight::inflight(std::string_view name, const inflight_options& limits)
    : name_(name), digest_(hash_seed::of_process(), id, name, duration::zero()),
      places_(limits.in_total), limits_(limits), buckets_(std::make_unique<bucket[]>(buckets())),
      more_(std::make_unique<holder[]>(buckets()))
{
    for (std::uint32_t i = 1; i < places_; ++i) more_[i - 1].next = i;
}

inline permit inflight::enter(const key& who) noexcept { return told(who, take(who)); }

inline auto inflight::take(const key& who) noexcept -> standing
{
    standing              seen{.limits = limits()};
    auto&                 in = bucket_of(who);
    const std::lock_guard turn(in.mutex);
    auto*                 mine = find(in, who);
    seen.of_key                = mine != nullptr ? mine->held : 0;
    seen.of_all                = held();
    if (seen.of_key >= seen.limits.per_key || !take_of_all(seen)) return seen;
    if (mine == nullptr) mine = &begin(in, who);
    seen.of_key   = ++mine->held;
    seen.admitted = true;
    return seen;
}

/// A place of the total. Acquires what `leave` released, so that a holder is free for the place.
inline bool inflight::take_of_all(standing& seen) noexcept
{
    do
        if (seen.of_all >= seen.limits.in_total) return false;
    while (!held_.compare_exchange_weak(seen.of_all, seen.of_all + 1, std::memory_order_acq_rel,
                                        relaxed));
    ++seen.of_all;
    return true;
}

inline void inflight::leave(const key& who) noexcept
{
    auto&                 in = bucket_of(who);
    const std::lock_guard turn(in.mutex);
    auto* const           mine = find(in, who);
    if (--mine->held == 0) end(in, *mine);
    held_.fetch_sub(1, std::memory_order_acq_rel);
}

inline permit inflight::told(const key& who, const standing& seen) noexcept
{
    const auto left   = [](auto most, auto taken) { return most - std::min(most, taken); };
    const auto of_key = left(seen.limits.per_key, seen.of_key);
    const auto of_all = left(seen.limits.in_total, seen.of_all);
    const auto bound  = of_all < of_key ? inflight_bound::in_total : inflight_bound::per_key;

    weir::decision made{.verdict = seen.admitted ? verdict::admitted : verdict::refused,
                        .limiter = name_,
                        .limit   = of_all < of_key ? seen.limits.in_total : seen.limits.per_key,
                        .left    = std::min(of_key, of_all)};
    if (!seen.admitted) made.retry_after.reset();
    return {{seen.admitted ? this : nullptr, permit::leave{who}}, made, bound};
}

inline auto inflight::bucket_of(const key& who) const noexcept -> bucket&
{
    return buckets_[(who.high >> 32) * places_ >> 32];
}

inline auto inflight::find(bucket& in, const key& who) const noexcept -> holder*
{
    for (auto* at = &in.first;; at = &more_[at->next]) {
        if (at->held > 0 && at->who == who) return at;
        if (at->next == none) return nullptr;
    }
}

/// An unused holder for the key. There is one: each that is in use has a place of the total, which
/// is given back after it.
inline auto inflight::begin(bucket& in, const key& who) noexcept -> holder&
{
    if (in.first.held == 0) {
        in.first.who = who;
        return in.first;
    }
    const std::lock_guard turn(unused_mutex_);
    const auto            index = unused_;
    auto&                 one   = more_[index];
    unused_                     = one.next;
    one                         = {.who = who, .next = in.first.next};
    in.first.next               = index;
    return one;
}

inline void inflight::end(bucket& in, holder& gone) noexcept
{
    if (&gone == &in.first) return;
    auto* before = &in.first;
    while (&more_[before->next] != &gone) before = &more_[before->next];
    const std::lock_guard turn(unused_mutex_);
    gone.next = std::exchange(unused_, std::exchange(before->next, gone.next));
}

inline std::uint32_t inflight::held(const key& who) const noexcept
{
    auto&                 in = bucket_of(who);
    const std::lock_guard turn(in.mutex);
    const auto* const     mine = find(in, who);
    return mine != nullptr ? mine->held : 0;
}

inline bool inflight::set_limits(const inflight_options& limits) noexcept
{
    if (limits.in_total > places_) return false;
    limits_.store(limits, relaxed);
    return true;
}

inline std::size_t inflight::bytes() const noexcept
{
    return sizeof(*this) + buckets() * (sizeof(bucket) + sizeof(holder));
}

}  // namespace weir
