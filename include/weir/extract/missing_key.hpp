// SPDX-License-Identifier: BSL-1.0
#pragma once

// What to do with a request that has nothing to be counted by. Nobody else can know: whether a
// request without an API key may pass depends on what it can do without one.

#include <concepts>
#include <cstdint>
#include <optional>

#include "weir/extract/field.hpp"
#include "weir/key.hpp"

namespace weir {

/// What the operator chose. It has no default here: for a limit on sign-ins or on mail both `pass`
/// and `shared_bucket` can be the wrong one, so it must be written down.
enum class missing_key : std::uint8_t {
    pass,           ///< Neither limited nor counted. Whoever leaves the value out has no limit.
    reject,         ///< A bad request: 400, without Retry-After.
    shared_bucket,  ///< One count for all that have no value. One caller can use it up for them.
};

/// What to do now.
enum class key_step : std::uint8_t {
    count,   ///< Ask the limiter.
    pass,    ///< Go on without asking it.
    reject,  ///< Answer 400.
};

/// What may be there or not: a `field`, a `client`.
template <class Value>
concept optional_key = subject_part<Value> && std::constructible_from<bool, const Value&>;

/// A value is counted; `chosen` is for the one that is missing. An ambiguous, malformed or too long
/// value is rejected whatever is chosen: the application may well take it, so to pass it would be a
/// way around the limit. Under `shared_bucket` count the value itself, whose bytes are then the
/// fixed subject of all that are none. Constant time, pure.
///
///     const auto key = api_key(request);
///     switch (weir::step_for(key, weir::missing_key::reject)) { … }
template <optional_key Value>
[[nodiscard]] constexpr key_step step_for(const Value& value, missing_key chosen) noexcept;

// ---------------------------------------------------------------------------------------------

template <optional_key Value>
constexpr key_step step_for(const Value& value, missing_key chosen) noexcept
{
    if (static_cast<bool>(value)) return key_step::count;
    if constexpr (requires { { value.why() } -> std::same_as<std::optional<absence>>; })
        if (value.why() != absence::missing) return key_step::reject;

    switch (chosen) {
    case missing_key::pass: return key_step::pass;
    case missing_key::reject: return key_step::reject;
    case missing_key::shared_bucket: return key_step::count;
    }
    return key_step::reject;
}

}  // namespace weir
