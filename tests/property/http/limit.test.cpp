// SPDX-License-Identifier: BSL-1.0

// What a client is told in its header fields holds when it acts on it.

#include "weir/http/limit.hpp"

#include "catch.hpp"
#include "reference/http_caller.hpp"
#include "reference/one_client.hpp"
#include "reference/random.hpp"
#include "weir/http/counted.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

using namespace std::chrono_literals;
using reference::caller;
using reference::field_of;
using reference::random_number;
using reference::t;
using weir::http::limit_options;
using weir::http::limit_policy;

namespace {

limit_options some_limit(reference::generator& random)
{
    constexpr std::array<weir::duration, 6> intervals{7ms, 100ms, 1s, 1500ms, 10s, 1min};
    limit_options                           options;
    options.name        = "site";
    options.max         = random_number<std::uint64_t>(random, 1, 12);
    options.interval    = intervals[random() % intervals.size()];
    options.headers     = true;
    options.policy      = static_cast<limit_policy>(random() % 4);
    options.retry_after = weir::http::told_wait::exact;
    options.quota       = weir::http::quota_form::both;
    const auto most     = options.policy == limit_policy::strict ? *options.max : 20;
    if (reference::chance(random, 50))
        options.burst = random_number<std::uint64_t>(random, 1, most);
    return options;
}

/// The last reply to a client, as numbers.
struct reading {
    bool          refused   = false;
    std::uint64_t limit     = 0;
    std::uint64_t remaining = 0;
    std::int64_t  reset     = 0;
    std::int64_t  retry     = 0;  // 0: none
    std::string   draft     = {};
};

reading ask(const weir::http::limit& limit, weir::instant at)
{
    const caller        who;
    weir::http::passage through;
    const auto          said   = limit.admit(who.visit(), through, at);
    const auto          fields = through.quota().fields();
    const auto          number = [&](const char* name) {
        return std::stoull(field_of(fields, name).value());
    };
    reading told{.refused   = said.has_value(),
                 .limit     = number("X-RateLimit-Limit"),
                 .remaining = number("X-RateLimit-Remaining"),
                 .reset     = static_cast<std::int64_t>(number("X-RateLimit-Reset")),
                 .draft     = field_of(fields, "RateLimit").value()};
    if (said) told.retry = std::stoll(field_of(said->fields, "Retry-After").value_or("0"));
    return told;
}

/// The wait that plain arithmetic asks for, of a client that was told the same so far.
template <class Policy>
class arithmetic {
public:
    explicit arithmetic(const limit_options& of)
        : policy_(weir::http::policy_of<Policy>(of.policy, *of.max, of.interval, of.burst))
    {
    }
    bool           spend(weir::instant at) { return policy_.spend(state_, 1, 1, at) == 1; }
    weir::duration wait(weir::instant at) const { return policy_.read(state_, 1, at).wait; }

private:
    Policy                 policy_;
    typename Policy::state state_;
};

/// False at the first contradiction.
template <class Policy>
bool holds(reference::generator& random, const limit_options& options)
{
    weir::http::counters    where({.max_keys = 10});
    const weir::http::limit limit(options, where);
    arithmetic<Policy>      own(options);
    auto at = t(0) + weir::duration(random_number<std::int64_t>(random, 0, 10'000) * 1'000'000);
    for (int step = 0; step < 40; ++step) {
        const auto told = ask(limit, at);
        const auto same =
            ";r=" + std::to_string(told.remaining) + ";t=" + std::to_string(told.reset);
        if (told.refused == own.spend(at) || !told.draft.ends_with(same)) return false;
        if (told.remaining > told.limit || told.reset < 1) return false;
        if (!told.refused) {
            // The next one at once is refused just when nothing was left.
            const auto next = ask(limit, at);
            if (next.refused == own.spend(at) || next.refused != (told.remaining == 0))
                return false;
            at += random_number<std::int64_t>(random, 0, 200) * options.interval / 500;
            continue;
        }
        const auto wait = own.wait(at);
        if (told.remaining != 0 || told.retry < 1 || told.retry > told.reset) return false;
        if (told.retry !=
            std::max<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(wait).count(), 1))
            return false;
        if (wait >= 1ms && !ask(limit, at + wait - 1ms).refused) return false;
        at += wait;
        if (ask(limit, at).refused || !own.spend(at)) return false;
    }
    return true;
}

bool holds(std::uint64_t seed)
{
    reference::generator random(seed);
    const auto           options = some_limit(random);
    switch (options.policy) {
    case limit_policy::sliding:
        return holds<weir::sliding_window>(random, options);
    case limit_policy::fixed:
        return holds<weir::fixed_window>(random, options);
    case limit_policy::gcra:
    case limit_policy::strict:
        break;
    }
    return holds<weir::gcra>(random, options);
}

}  // namespace

TEST_CASE("quota fields and Retry-After never contradict each other or what happens next",
          "[http][property]")
{
    const auto    rounds = reference::steps(10'000);
    std::uint64_t wrong  = 0;
    for (std::uint64_t seed = 0; seed < rounds; ++seed)
        if (!holds(seed)) {
            UNSCOPED_INFO("seed " << seed);
            ++wrong;
        }
    CHECK(wrong == 0);
}
