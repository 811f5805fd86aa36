// SPDX-License-Identifier: BSL-1.0
#pragma once

// A lockout told a second time, with a list of instants and nothing packed, so that a mistake of
// the policy's is not also the test's; and random asks for it.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "weir/policy/lockout.hpp"
#include "weir/store.hpp"

#include "random.hpp"

namespace reference {

class lockout_oracle {
public:
    explicit lockout_oracle(const weir::lockout& limit) : limit_(limit) {}

    /// How many of so many callers may try.
    std::uint64_t claim(std::uint64_t times, weir::instant at)
    {
        auto next = *this;
        at        = next.move_to(at);
        if (next.tries_.size() >= limit_.failures) return 0;
        std::uint64_t granted = 0;
        for (; granted < times && next.tries_.size() < limit_.failures; ++granted) next.add(at);
        if (granted > 0) *this = next;
        return granted;
    }

    void take_back(weir::instant of, weir::instant at)
    {
        if (at >= of + limit_.outcome_within) return;
        const auto same =
            std::ranges::find_if(tries_, [&](auto one) { return rounded(one) == rounded(of); });
        if (same == tries_.end()) return;
        const bool was_last = same + 1 == tries_.end();
        tries_.erase(same);
        if (was_last && !tries_.empty()) tries_.back() = rounded(tries_.back());
    }

    /// How many more may try, and how long the next one who may not has to wait.
    struct view {
        std::uint64_t  left = 0, level = 0;
        weir::duration wait                          = {};
        bool           operator==(const view&) const = default;
    };
    [[nodiscard]] view look(weir::instant at) const
    {
        auto       next  = *this;
        const auto then  = next.move_to(at);
        const auto taken = next.tries_.size();
        view       seen{.left = limit_.failures - taken, .level = next.level_};
        if (seen.left == 0) seen.wait = next.opens() - at;
        (void)then;
        return seen;
    }

private:
    using seconds = std::chrono::seconds;

    [[nodiscard]] weir::instant rounded(weir::instant one) const
    {
        const auto over = one.time_since_epoch() % limit_.grain;
        return over == weir::duration::zero() ? one : one - over + limit_.grain;
    }

    [[nodiscard]] weir::duration length() const
    {
        auto made = limit_.first;
        for (std::uint64_t n = 0; n < level_ && made < limit_.longest; ++n) made *= 2;
        return std::min(made, limit_.longest);
    }

    [[nodiscard]] weir::instant opens() const
    {
        const auto whole = length();
        const auto micro = tries_.back().time_since_epoch() / std::chrono::microseconds(1);
        const auto part  = ((micro % 1'000'003) * 7'919 % 1'009) % (limit_.random_part + 1);
        return tries_.back() + whole + whole / 100 * part;
    }

    void add(weir::instant at)
    {
        if (!tries_.empty()) tries_.back() = rounded(tries_.back());
        tries_.push_back(at);
    }

    /// What the tries mean at `at`, which is told back as it is judged.
    weir::instant move_to(weir::instant at)
    {
        if (!tries_.empty() && tries_.back() > at) {
            const auto most = std::max<weir::duration>(limit_.window, std::chrono::hours(1));
            if (tries_.back() - at > most) tries_.clear(), level_ = 0;
            else at = tries_.back();
        }
        if (tries_.size() >= limit_.failures) {
            const auto end = opens();
            if (at < end) return at;
            ended_ = std::chrono::ceil<seconds>(end);
            if (length() < limit_.longest) ++level_;
            tries_.clear();
        }
        while (level_ > 0 && std::chrono::floor<seconds>(at) >= ended_ + limit_.quiet)
            --level_, ended_ += std::chrono::duration_cast<seconds>(limit_.quiet);
        std::erase_if(tries_, [&](auto one) { return rounded(one) + limit_.window <= at; });
        return at;
    }

    weir::lockout              limit_;
    std::vector<weir::instant> tries_;  // the latest last
    std::uint64_t              level_ = 0;
    std::chrono::sys_seconds   ended_ = {};
};

/// One key of a lockout, asked at random; each answer is compared with the oracle's.
class lockout_life {
public:
    explicit lockout_life(const weir::lockout& limit) : limit_(limit), oracle_(limit) {}

    [[nodiscard]] weir::ask<weir::lockout> next(generator& random) const
    {
        weir::ask<weir::lockout> question{.limit = limit_};
        const auto               dice = random() % 100;
        question.times                = dice % 2 == 0 ? 1 : 1 + random() % 4;
        if (dice < 55) return question;
        question.times = 1;
        if (dice < 90 && !claimed_.empty()) {
            question.verb   = weir::verb::give_back;
            question.lapses = claimed_[random() % claimed_.size()] + limit_.outcome_within;
        } else {
            question.verb = dice < 98 ? weir::verb::peek : weir::verb::forget;
        }
        return question;
    }

    /// False if it differs in anything. `at` is when it was asked.
    bool agrees(const weir::ask<weir::lockout>& question, const weir::reply<weir::lockout>& said,
                weir::instant at)
    {
        std::uint64_t due = 0;
        if (question.verb == weir::verb::spend) {
            due = oracle_.claim(question.times, at);
            if (due > 0) claimed_.push_back(said.at);
            if (claimed_.size() > 8) claimed_.erase(claimed_.begin());
        } else if (question.verb == weir::verb::give_back) {
            oracle_.take_back(question.lapses - limit_.outcome_within, at);
        } else if (question.verb == weir::verb::forget) {
            oracle_ = lockout_oracle(limit_);
        }
        const auto read = limit_.read(said.after, 1, at);
        const auto seen = limit_.look(said.after, at);
        return said.granted == due &&
               oracle_.look(at) == lockout_oracle::view{read.left, seen.level, read.wait};
    }

    [[nodiscard]] const weir::lockout& limit() const { return limit_; }

private:
    weir::lockout              limit_;
    lockout_oracle             oracle_;
    std::vector<weir::instant> claimed_;
};

/// Mostly small steps onward; now and then far ahead, to a landmark, or back.
inline weir::instant stepped(generator& random, const weir::lockout& limit, weir::instant at)
{
    const auto up_to = [&](weir::duration most) {
        return weir::duration(random_number<std::int64_t>(random, 0, most.count()));
    };
    const auto dice = random() % 100;
    if (dice < 20) return at;
    if (dice < 60) return at + up_to(limit.window / 4);
    if (dice < 75) return at + limit.window / 5;
    if (dice < 85) return at + up_to(2 * limit.first);
    if (dice < 90) return at + limit.first;
    if (dice < 93) return at + up_to(limit.longest);
    if (dice < 95) return at + up_to(limit.quiet);
    if (dice < 98) return at - up_to(limit.window / 3);
    return dice < 99 ? at - up_to(std::chrono::hours(3)) : at + up_to(3 * limit.quiet);
}

/// Of many shapes, each with its own number of bits for a try.
inline std::vector<weir::lockout> lockouts()
{
    using namespace std::chrono_literals;
    return {{},
            {.failures = 20, .window = 24h, .first = 24h, .longest = 48h},
            {.failures = 3, .window = 1h, .first = 1h, .longest = 1h, .quiet = 24h},
            {.failures = 1, .window = 10s, .first = 30s, .longest = 1h, .quiet = 1h},
            {.failures       = 2,
             .window         = 777ms,
             .first          = 1s,
             .longest        = 9s,
             .quiet          = 20s,
             .outcome_within = 300ms},
            {.failures    = 21,
             .window      = 3min,
             .first       = 5min,
             .longest     = 3h,
             .quiet       = 6h,
             .random_part = 25},
            {.failures    = 7,
             .window      = 30min,
             .first       = 30min,
             .longest     = 30h,
             .random_part = 100,
             .mark        = 4'095}};
}

}  // namespace reference
