// SPDX-License-Identifier: BSL-1.0
#pragma once

// The little of a request that extractors read, borrowed from whatever server received it. An
// adapter says how to find header lines in its own request type; nothing is copied or allocated.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weir/extract/address.hpp"

namespace weir {

/// Who is at the other end of the socket, as the server knows it: an address, a Unix socket, or
/// unknown. Never taken from a header. A value.
class peer {
public:
    /// Unknown.
    constexpr peer() noexcept = default;
    constexpr peer(const weir::address& at) noexcept : address_(at) {}

    [[nodiscard]] static constexpr peer unix_socket() noexcept;

    /// From the text a server hands out: an address with or without port; `unix`, `unix:…` or
    /// `@…` (the abstract names of Linux) is a Unix socket; anything else is unknown.
    [[nodiscard]] static constexpr peer parse(std::string_view text) noexcept;

    [[nodiscard]] constexpr bool is_unix_socket() const noexcept { return unix_socket_; }
    [[nodiscard]] constexpr bool is_unknown() const noexcept { return !unix_socket_ && !address_; }
    [[nodiscard]] constexpr const std::optional<weir::address>& address() const noexcept
    {
        return address_;
    }

    friend constexpr bool operator==(const peer&, const peer&) = default;

private:
    std::optional<weir::address> address_;
    bool                         unix_socket_ = false;
};

/// How much of repeated header lines a server lets us see.
enum class line_fidelity : std::uint8_t {
    in_order,       ///< All lines, in the order of the wire.
    any_order,      ///< All lines, their order lost.
    later_dropped,  ///< The first line of a name only; we cannot know whether there were more.
};

/// Where `request` sends the values it finds: a borrowed callable, valid during the call only.
class line_sink {
public:
    template <std::invocable<std::string_view> Visitor>
        requires(!std::same_as<std::remove_cvref_t<Visitor>, line_sink>)
    constexpr line_sink(Visitor&& visitor) noexcept
        : to_(const_cast<void*>(static_cast<const void*>(std::addressof(visitor)))),
          call_([](void* to, std::string_view value) {
              (*static_cast<std::remove_reference_t<Visitor>*>(to))(value);
          })
    {
    }
    void operator()(std::string_view value) const { call_(to_, value); }

private:
    void* to_;
    void (*call_)(void*, std::string_view);
};

/// What an adapter knows without looking at header lines. `target` is path and query as sent.
struct request_facts {
    weir::peer       peer   = {};
    std::string_view method = {};
    std::string_view target = {};
    line_fidelity    lines  = line_fidelity::in_order;
};

/// How an adapter finds header lines: a captureless callable that sends the value of every line
/// whose name is `name` (compare with `same_header_name`) to the sink, in the order it has.
template <class Lines, class Native>
concept finds_lines =
    std::is_empty_v<Lines> && std::default_initializable<Lines> &&
    std::invocable<const Lines&, const Native&, std::string_view, const line_sink&>;

/// One header line, as an event loop or a test holds it.
struct header_line {
    std::string_view name  = {};
    std::string_view value = {};
};

/// A request as extractors see it. Cheap to make; borrows all that it shows, so do not keep it.
///
///     return weir::request(native, {.peer = weir::peer::parse(native.remote_addr)},
///                          [](const auto& from, std::string_view name, const auto& found) { … });
class request {
public:
    template <class Native, finds_lines<Native> Lines>
    constexpr request(const Native& native, const request_facts& facts, Lines) noexcept
        : native_(std::addressof(native)), lines_(&find<Native, Lines>), facts_(facts)
    {
    }

    /// From header lines in the order of the wire.
    constexpr request(std::span<const header_line> lines, const request_facts& facts) noexcept
        : native_(lines.data()), count_(lines.size()), facts_(facts)
    {
    }

    [[nodiscard]] constexpr const weir::peer& peer() const noexcept { return facts_.peer; }
    [[nodiscard]] constexpr std::string_view  method() const noexcept { return facts_.method; }
    [[nodiscard]] constexpr std::string_view  target() const noexcept { return facts_.target; }
    [[nodiscard]] constexpr line_fidelity     lines() const noexcept { return facts_.lines; }

    /// Calls `visit` with the value of every line of this name, which is compared without regard
    /// to case. The order is that of the wire if `lines()` says so. Throws what `visit` throws.
    void for_each_line(std::string_view name, const line_sink& visit) const;

private:
    template <class Native, class Lines>
    static void find(const void* native, std::string_view name, const line_sink& found)
    {
        Lines{}(*static_cast<const Native*>(native), name, found);
    }

    const void* native_ = nullptr;
    void (*lines_)(const void*, std::string_view, const line_sink&) = nullptr;  // null: a span
    std::size_t   count_ = 0;
    request_facts facts_;
};

/// Whether two header names are one: ASCII letters match in either case, all else byte by byte.
[[nodiscard]] constexpr bool same_header_name(std::string_view a, std::string_view b) noexcept;

// ---------------------------------------------------------------------------------------------

constexpr peer peer::unix_socket() noexcept
{
    peer one;
    one.unix_socket_ = true;
    return one;
}

constexpr peer peer::parse(std::string_view text) noexcept
{
    if (text == "unix" || text.starts_with("unix:") || text.starts_with('@')) return unix_socket();
    if (const auto found = weir::address::parse_endpoint(text)) return *found;
    return {};
}

inline void request::for_each_line(std::string_view name, const line_sink& visit) const
{
    if (lines_ != nullptr) return lines_(native_, name, visit);
    for (const auto& line : std::span(static_cast<const header_line*>(native_), count_))
        if (same_header_name(line.name, name)) visit(line.value);
}

constexpr bool same_header_name(std::string_view a, std::string_view b) noexcept
{
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    };
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

}  // namespace weir
