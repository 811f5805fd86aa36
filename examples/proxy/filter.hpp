// SPDX-License-Identifier: BSL-1.0
#pragma once

// The plugins of one location at one step: limits and restrictions, asked in the order in which the
// location names them until one answers.

#include "weir/http/answer.hpp"
#include "weir/http/limit.hpp"
#include "weir/http/visit.hpp"
#include "weir/time.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace proxy {

using weir::http::answer;
using weir::http::passage;
using weir::http::visit;

/// A restriction of any kind.
using restriction = std::function<std::optional<answer>(const visit&, weir::instant)>;

using filter =
    std::variant<std::shared_ptr<const weir::http::limit>, std::shared_ptr<const restriction>>;

/// Thread-safe once it is made.
class filter_chain {
public:
    using told = std::function<void(std::optional<answer>)>;

    void add(filter one);

    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

    /// Whether one of them waits for a store, so that `admit_then` is to be taken.
    [[nodiscard]] bool answers_later() const noexcept { return later_; }

    [[nodiscard]] std::optional<answer> admit(const visit& who, passage& through,
                                              weir::instant at) const;

    /// `done` is called once, here or on a thread of a store. The visit, the passage and this chain
    /// stay until then.
    void admit_then(const visit& who, passage& through, told done) const;

private:
    void ask(std::size_t index, const visit& who, passage& through, told done) const;

    std::vector<filter> all_;
    bool                later_ = false;
};

// ---------------------------------------------------------------------------------------------

inline void filter_chain::add(filter one)
{
    if (const auto* limit = std::get_if<0>(&one)) later_ = later_ || (*limit)->answers_later();
    all_.push_back(std::move(one));
}

inline std::optional<answer> filter_chain::admit(const visit& who, passage& through,
                                                 weir::instant at) const
{
    for (const auto& one : all_) {
        const auto* limit = std::get_if<0>(&one);
        auto        made =
            limit != nullptr ? (*limit)->admit(who, through, at) : (*std::get<1>(one))(who, at);
        if (made) return made;
    }
    return std::nullopt;
}

inline void filter_chain::admit_then(const visit& who, passage& through, told done) const
{
    ask(0, who, through, std::move(done));
}

inline void filter_chain::ask(std::size_t index, const visit& who, passage& through,
                              told done) const
{
    for (; index < all_.size(); ++index) {
        const auto* limit = std::get_if<0>(&all_[index]);
        if (limit != nullptr && (*limit)->answers_later()) break;
        const auto at   = weir::now();
        auto       made = limit != nullptr ? (*limit)->admit(who, through, at)
                                           : (*std::get<1>(all_[index]))(who, at);
        if (made) return done(std::move(made));
    }
    if (index == all_.size()) return done(std::nullopt);
    std::get<0>(all_[index])
        ->admit_then(who, through,
                     [this, index, &who, &through, done = std::move(done)](auto made) mutable {
                         if (made) return done(std::move(made));
                         ask(index + 1, who, through, std::move(done));
                     });
}

}  // namespace proxy
