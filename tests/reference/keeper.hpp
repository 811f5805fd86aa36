// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who looks after a line in a test.

#include <atomic>

#include "far_side.hpp"
#include "weir/remote/attendant.hpp"
#include "weir/remote/line.hpp"

namespace reference {

/// Counts what it is told, and mends at once if it is to. Thread-safe.
class keeper final : public weir::remote::caretaker {
public:
    void lost() noexcept override
    {
        ++losses;
        if (mends) mends->mend(from->connect());
    }
    void poke() noexcept override
    {
        ++pokes;
        if (auto* const one = attendant.load()) one->poke();
    }
    void changed(bool answers) noexcept override { ++(answers ? backs : aways); }

    std::atomic<int> losses = 0, pokes = 0, backs = 0, aways = 0;

    weir::remote::line*                   mends     = nullptr;
    far_side*                             from      = nullptr;
    std::atomic<weir::remote::attendant*> attendant = nullptr;
};

}  // namespace reference
