// SPDX-License-Identifier: BSL-1.0
#pragma once

// The limiters that a store in the process knows.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.hpp"
#include "weir/time.hpp"
#include "weir/warning.hpp"

namespace weir {

/// Counters by what names a limiter: its name, its kind of policy, its window. Enrolled again
/// (after a reload, with another limit), a limiter meets its counters again. Nothing is ever taken
/// out, so references stay good. Thread-safe; O(limiters).
template <template <class> class Counters>
class enrolled {
public:
    explicit enrolled(warning_listener warn) noexcept : warn_(warn) {}

    /// The counters of this limiter; made by `make()` when it is new.
    template <policy Policy, class Make>
    Counters<Policy>& find_or_make(std::string_view name, const Policy& limit, Make&& make)
    {
        const std::lock_guard turn(mutex_);
        for (const auto& one : all_)
            if (one->kind == &kind_of<Policy> && one->window == limit.window && one->name == name) {
                if (++one->times == too_often && warn_ != nullptr)
                    warn_(warning::limiter_per_request);
                return static_cast<held<Policy>&>(*one).counters;
            }
        auto  made     = std::make_unique<held<Policy>>(name, limit, make());
        auto& counters = made->counters;
        all_.push_back(std::move(made));
        return counters;
    }

    /// Bytes of all counters.
    [[nodiscard]] std::size_t bytes() const
    {
        const std::lock_guard turn(mutex_);
        std::size_t           sum = 0;
        for (const auto& one : all_) sum += one->bytes();
        return sum;
    }

private:
    static constexpr std::size_t too_often = 10'000;

    template <policy Policy>
    static inline const char kind_of = 0;  // its address stands for the type

    struct entry {
        entry(std::string_view name_, const void* kind_, duration window_)
            : name(name_), kind(kind_), window(window_)
        {
        }
        virtual ~entry()                                = default;
        [[nodiscard]] virtual std::size_t bytes() const = 0;

        std::string name;
        const void* kind;
        duration    window;
        std::size_t times = 1;
    };

    template <policy Policy>
    struct held final : entry {
        held(std::string_view name_, const Policy& limit, std::unique_ptr<Counters<Policy>> made)
            : entry(name_, &kind_of<Policy>, limit.window), owned(std::move(made)), counters(*owned)
        {
        }
        [[nodiscard]] std::size_t bytes() const override { return counters.bytes(); }

        std::unique_ptr<Counters<Policy>> owned;
        Counters<Policy>&                 counters;
    };

    warning_listener                    warn_;
    mutable std::mutex                  mutex_;
    std::vector<std::unique_ptr<entry>> all_;
};

}  // namespace weir
