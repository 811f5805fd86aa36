// SPDX-License-Identifier: BSL-1.0
#pragma once

// One request as filters see it, and what they leave with its exchange.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/extract/client.hpp"
#include "weir/extract/request.hpp"
#include "weir/http/quota_headers.hpp"
#include "weir/inflight.hpp"

namespace weir::http {

/// A request on its way through filters. It borrows all that it shows, for the length of one call;
/// for an asynchronous one until its callback.
struct visit {
    const weir::request& from;
    const weir::client&  client;         ///< Who we believe is calling.
    std::string_view     location = {};  ///< The route's name, never the path: see docs/limits.md.
    std::string_view     request_id = {};
    std::string_view     ja4        = {};  ///< Of the connection; empty if there is none.
};

/// What the filters of one exchange leave with it: the places of inflight limits that it holds, and
/// the budget to tell. Keep it until the response is done: a destructor on whatever path gives the
/// places back. Movable. Not thread-safe, but any thread may be the one to drop it. It keeps what
/// its places lie in, so it may outlive the limits.
class passage {
public:
    /// Places that are kept without an allocation.
    static constexpr std::size_t places_inside = 4;

    passage()                              = default;
    passage(passage&&) noexcept            = default;
    passage& operator=(passage&&) noexcept = default;

    /// Which budget is told: `quota().fields()` belong on every response of this exchange, be it
    /// the upstream's, a limit's refusal, another filter's answer or an error page.
    [[nodiscard]] const quota_note& quota() const noexcept { return quota_; }
    [[nodiscard]] quota_note&       quota() noexcept { return quota_; }

    /// Keeps a place, and what it is a place in. Allocates from the fifth on.
    void keep(std::shared_ptr<inflight> in, permit held);

    /// Gives all places back now.
    void leave() noexcept;

    [[nodiscard]] std::size_t places() const noexcept;

private:
    struct place {
        std::shared_ptr<inflight> in;  // outlives the permit
        std::optional<permit>     held;

        place() = default;
        place(std::shared_ptr<inflight> in_, permit held_)
            : in(std::move(in_)), held(std::move(held_))
        {
        }
        place(place&& other) noexcept
            : in(std::move(other.in)), held(std::exchange(other.held, std::nullopt))
        {
        }
        place& operator=(place&& other) noexcept
        {
            held.reset();
            in   = std::move(other.in);
            held = std::exchange(other.held, std::nullopt);
            return *this;
        }
    };

    quota_note                       quota_;
    std::array<place, places_inside> inside_;
    std::vector<place>               more_;
};

// ---------------------------------------------------------------------------------------------

inline void passage::keep(std::shared_ptr<inflight> in, permit held)
{
    for (auto& one : inside_)
        if (!one.held) {
            one = place(std::move(in), std::move(held));
            return;
        }
    more_.emplace_back(std::move(in), std::move(held));
}

// Places are filled from the first on and emptied together, so the first empty one ends them: the
// others lie in cache lines that most exchanges need not touch.

inline void passage::leave() noexcept
{
    for (auto& one : inside_) {
        if (!one.held) break;
        one = place();
    }
    more_.clear();
}

inline std::size_t passage::places() const noexcept
{
    std::size_t held = more_.size();
    for (const auto& one : inside_) {
        if (!one.held) break;
        ++held;
    }
    return held;
}

}  // namespace weir::http
