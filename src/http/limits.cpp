// SPDX-License-Identifier: BSL-1.0

#include "weir/http/limits.hpp"

#include <algorithm>
#include <utility>

#include "weir/invalid.hpp"

namespace weir::http {

namespace {

/// One request on its way through limits that answer later. It owns itself until the last answer.
struct walk : std::enable_shared_from_this<walk> {
    walk(const limits& all_, limit_step step_, const visit& who_, passage& through_,
         limit::told done_)
        : all(all_), step(step_), who(who_), through(through_), done(std::move(done_))
    {
    }

    void go_on(std::optional<answer> said)
    {
        const auto& each = all.all();
        while (!said && next < each.size()) {
            const auto& one = *each[next++];
            if (one.step() != step) continue;
            if (one.answers_later())
                return one.admit_then(who, through, [self = shared_from_this()](auto answer) {
                    self->go_on(std::move(answer));
                });
            said = one.admit(who, through, now());
        }
        done(std::move(said));
    }

    const limits& all;
    limit_step    step;
    const visit&  who;
    passage&      through;
    limit::told   done;
    std::size_t   next = 0;
};

}  // namespace

limits::limits(std::vector<std::shared_ptr<const limit>> all) : all_(std::move(all))
{
    if (std::ranges::any_of(all_, [](const auto& one) { return one == nullptr; }))
        weir::detail::invalid("limits: one of them is null");
}

std::optional<answer> limits::admit(limit_step step, const visit& who, passage& through,
                                    instant at) const
{
    for (const auto& one : all_)
        if (one->step() == step)
            if (auto said = one->admit(who, through, at)) return said;
    return std::nullopt;
}

void limits::admit_then(limit_step step, const visit& who, passage& through, limit::told done) const
{
    if (!answers_later(step)) return done(admit(step, who, through, now()));
    std::make_shared<walk>(*this, step, who, through, std::move(done))->go_on(std::nullopt);
}

bool limits::answers_later(limit_step step) const noexcept
{
    return std::ranges::any_of(
        all_, [&](const auto& one) { return one->step() == step && one->answers_later(); });
}

bool limits::any(limit_step step) const noexcept
{
    return std::ranges::any_of(all_, [&](const auto& one) { return one->step() == step; });
}

}  // namespace weir::http
