// SPDX-License-Identifier: BSL-1.0
#pragma once

// Whether something works, as the threads that use it found the last time.

#include <atomic>
#include <cstdio>
#include <string_view>

namespace forms {

/// Thread-safe. Tells standard error when it turns, once for all threads, and not each failure.
class health {
public:
    explicit health(const char* of) : of_(of) {}

    [[nodiscard]] bool good() const noexcept
    {
        return failing_.load(std::memory_order_relaxed) == 0;
    }

    /// What one thread knows of it.
    class part {
    public:
        explicit part(health& whole) : whole_(&whole) {}

        [[nodiscard]] bool good() const noexcept { return good_.load(std::memory_order_relaxed); }

        void works()
        {
            if (good_.exchange(true)) return;
            if (whole_->failing_.fetch_sub(1) == 1)
                std::fprintf(stderr, "weir-forms: %s works again\n", whole_->of_);
        }

        void fails(std::string_view why)
        {
            if (!good_.exchange(false)) return;
            if (whole_->failing_.fetch_add(1) == 0)
                std::fprintf(stderr, "weir-forms: %s fails: %.*s\n", whole_->of_,
                             static_cast<int>(why.size()), why.data());
        }

    private:
        health*           whole_;
        std::atomic<bool> good_ = true;
    };

private:
    const char*      of_;
    std::atomic<int> failing_ = 0;
};

}  // namespace forms
