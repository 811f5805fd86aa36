// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who a limit counts: a subject is bytes borrowed from a request, a key is its 128-bit keyed
// digest. Stores see keys only, so nothing of a request is kept and no length or byte can hurt.

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weir/invalid.hpp"
#include "weir/sip_hash.hpp"
#include "weir/time.hpp"

namespace weir {

/// What can be one part of a subject: text, or a type that shows its bytes (a client address does).
// clang-format off
template <class Part>
concept subject_part = std::convertible_to<const Part&, std::string_view> ||
                       requires(const Part& part) {
                           { part.bytes() } -> std::convertible_to<std::string_view>;
                       };
// clang-format on

/// The bytes of a part, borrowed from it.
template <subject_part Part>
[[nodiscard]] constexpr std::string_view bytes_of(const Part& part) noexcept
{
    if constexpr (std::convertible_to<const Part&, std::string_view>) return part;
    else return part.bytes();
}

/// What a request is counted by: one part, or several (see `parts`). Any bytes, any length.
/// It borrows them: digest it before they go, and do not keep it.
class subject {
public:
    template <subject_part Part>
    constexpr subject(const Part& part) noexcept : first_(bytes_of(part))
    {
    }
    constexpr subject(std::string_view first, std::span<const std::string_view> rest) noexcept
        : first_(first), rest_(rest)
    {
    }

    [[nodiscard]] constexpr std::string_view first() const noexcept { return first_; }
    [[nodiscard]] constexpr std::span<const std::string_view> rest() const noexcept
    {
        return rest_;
    }

private:
    std::string_view                  first_;
    std::span<const std::string_view> rest_;
};

/// Several parts as one subject: `per_pair.admit(weir::parts{user, address})`. Parts are never
/// run together: ("a|b", "c") and ("a", "b|c") are two keys. It borrows what its parts borrow.
template <std::size_t Count>
class parts {
public:
    template <subject_part... Part>
        requires(sizeof...(Part) == Count)
    constexpr explicit parts(const Part&... part) noexcept : bytes_{bytes_of(part)...} {}
    constexpr operator subject() const noexcept
    {
        return {bytes_[0], std::span(bytes_).subspan(1)};
    }

private:
    std::array<std::string_view, Count> bytes_;
};
template <class... Part>
parts(const Part&...) -> parts<sizeof...(Part)>;

/// 128 bits that stand for a subject under one limit. Ordered, so that several can be taken in
/// one order by everybody.
struct key {
    std::uint64_t high = 0;
    std::uint64_t low  = 0;

    friend constexpr auto operator<=>(const key&, const key&) = default;
};

/// Who is counted: a subject, or a key that `digest` made of one before.
template <class Who>
concept identity = std::same_as<Who, key> || std::convertible_to<const Who&, subject>;

/// Feeds `hash` what all keys of one limit begin with: u8 layout version, u8 policy id, u16 length
/// of the name, the name, u64 window in nanoseconds; numbers with the lowest byte first. The layout
/// is fixed for ever: shared stores and their processes meet in it.
template <class Hash>
constexpr void feed_limit(Hash& hash, std::uint8_t policy_id, std::string_view name,
                          duration window);

/// Feeds `hash` a subject: for each part, u64 length and its bytes.
template <class Hash>
constexpr void feed_subject(Hash& hash, const subject& who) noexcept;

/// Turns the subjects of one limit into keys by SipHash-1-3-128. The state after the part that all
/// of them share is computed once. Immutable after construction, hence thread-safe.
class digest {
public:
    /// Throws std::invalid_argument for a name of more than 65,535 bytes.
    constexpr digest(const hash_seed& seed, std::uint8_t policy_id, std::string_view name,
                     duration window)
        : begun_(seed)
    {
        feed_limit(begun_, policy_id, name, window);
    }

    /// O(bytes of the subject); no allocation.
    [[nodiscard]] constexpr key operator()(const subject& who) const noexcept
    {
        auto hash = begun_;
        feed_subject(hash, who);
        const auto value = hash.finish();
        return {value.high, value.low};
    }

private:
    sip_hash begun_;
};

// ---------------------------------------------------------------------------------------------

template <class Hash>
constexpr void feed_limit(Hash& hash, std::uint8_t policy_id, std::string_view name,
                          duration window)
{
    constexpr char layout_version = 1;
    if (name.size() > 0xffff)
        detail::invalid("the name of a limiter has " + std::to_string(name.size()) +
                        " bytes; at most 65535 are allowed");
    const char head[] = {layout_version, static_cast<char>(policy_id),
                         static_cast<char>(name.size() & 0xff),
                         static_cast<char>(name.size() >> 8)};
    hash.feed(std::string_view(head, sizeof head)).feed(name);
    hash.feed(static_cast<std::uint64_t>(window.count()));
}

template <class Hash>
constexpr void feed_subject(Hash& hash, const subject& who) noexcept
{
    const auto feed_part = [&](std::string_view part) {
        hash.feed(std::uint64_t{part.size()}).feed(part);
    };
    feed_part(who.first());
    for (const auto part : who.rest()) feed_part(part);
}

}  // namespace weir
