// SPDX-License-Identifier: BSL-1.0
#pragma once

// Settings from the environment, read once at the start. Nothing stops at the first wrong one: all
// that is wrong is told together, in one line that names each variable, its value and what is
// allowed. An empty value counts as unset. The value of a secret is never told.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "weir/extract/cidr.hpp"
#include "weir/extract/client_ip.hpp"

#include <unistd.h>

namespace weir {

/// Where a server listens.
struct listen_address {
    weir::address at   = {};
    std::uint16_t port = 0;  ///< 0: any that is free.

    friend bool operator==(const listen_address&, const listen_address&) = default;
};

/// `127.0.0.1:8080` or `[::1]:8080`: an address, never a host name, and a port that is written out.
[[nodiscard]] inline std::optional<listen_address> parse_listen_address(std::string_view text);

/// Reads each setting by its type and remembers what was wrong:
///
///     weir::environment from;
///     const auto limit = from.integer("SITE_LIMIT", 60, 1, 1'000'000);
///     const auto wait  = from.seconds("SITE_WINDOW_SECONDS", 60s, 1s, 24h);
///     if (!from.complaint().empty()) …  // one line; then exit with 2
///
/// A wrong value is answered with the default, so that reading goes on. Not thread-safe; borrows
/// the block of variables. Every question is linear in the size of the environment.
class environment {
public:
    /// From a block as the system hands it to a process: `NAME=value` texts, then a null pointer.
    explicit environment(const char* const* block = ::environ) noexcept : block_(block) {}

    /// The raw value, or none when unset or empty.
    [[nodiscard]] std::optional<std::string_view> value(std::string_view name);

    /// true, yes, on, 1 or false, no, off, 0, in either case.
    [[nodiscard]] bool flag(std::string_view name, bool otherwise);

    /// A decimal number in [least, most], nothing before or after it.
    template <std::integral Number>
    [[nodiscard]] Number integer(std::string_view name, Number otherwise, Number least,
                                 Number most);

    /// Whole seconds in [least, most], written as a number without a unit.
    [[nodiscard]] std::chrono::seconds seconds(std::string_view name,
                                               std::chrono::seconds otherwise,
                                               std::chrono::seconds least,
                                               std::chrono::seconds most);

    [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise);

    /// A text of `least` characters or more, none of them a space or a control character; none if
    /// unset. Its value is never part of a complaint.
    [[nodiscard]] std::optional<std::string> secret(std::string_view name, std::size_t least);

    /// One of these words, as it is written.
    [[nodiscard]] std::string one_of(std::string_view name, std::string_view otherwise,
                                     std::initializer_list<std::string_view> words);

    /// Addresses, ranges, `private` and `unix`, by commas or spaces: what `client_ip_options`
    /// takes as `trusted`. Empty when unset.
    [[nodiscard]] std::vector<std::string> ranges(std::string_view name);

    [[nodiscard]] listen_address listen(std::string_view name, const listen_address& otherwise);

    /// Adds a problem that only the program can see. `value` is shown, so not for secrets.
    void reject(std::string_view name, std::string_view value, std::string_view allowed);

    /// Variables with this prefix that no question above was about: most likely misspelled.
    [[nodiscard]] std::vector<std::string> strangers(std::string_view prefix) const;

    /// All problems until now in one line, or nothing.
    [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }

private:
    void complain(std::string_view name, std::string_view what, std::string_view allowed);

    const char* const*                 block_;
    std::set<std::string, std::less<>> asked_;
    std::string                        complaint_;
};

// ---------------------------------------------------------------------------------------------

inline std::optional<listen_address> parse_listen_address(std::string_view text)
{
    const auto colon = text.rfind(':');
    if (colon == text.npos) return std::nullopt;
    const auto port = detail::decimal(text.substr(colon + 1), 5, 65535);
    const auto host = text.substr(0, colon);
    const bool v6   = host.starts_with('[') && host.ends_with(']');
    const auto at   = address::parse(v6 ? host.substr(1, host.size() - 2) : host);
    if (port < 0 || !at || v6 != (host.find(':') != host.npos)) return std::nullopt;
    return listen_address{.at = *at, .port = static_cast<std::uint16_t>(port)};
}

inline std::optional<std::string_view> environment::value(std::string_view name)
{
    asked_.emplace(name);
    for (auto entry = block_; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view line = *entry;
        if (line.size() <= name.size() || line[name.size()] != '=' || !line.starts_with(name))
            continue;
        const auto value = line.substr(name.size() + 1);
        if (value.empty()) return std::nullopt;
        return value;
    }
    return std::nullopt;
}

inline bool environment::flag(std::string_view name, bool otherwise)
{
    const auto given = value(name);
    if (!given) return otherwise;
    for (const auto* word : {"true", "yes", "on", "1"})
        if (same_header_name(*given, word)) return true;
    for (const auto* word : {"false", "no", "off", "0"})
        if (same_header_name(*given, word)) return false;
    reject(name, *given, "true or false");
    return otherwise;
}

template <std::integral Number>
Number environment::integer(std::string_view name, Number otherwise, Number least, Number most)
{
    const auto given = value(name);
    if (!given) return otherwise;
    Number     number = 0;
    const auto end    = given->data() + given->size();
    const auto read   = std::from_chars(given->data(), end, number);
    if (read.ec == std::errc{} && read.ptr == end && number >= least && number <= most)
        return number;
    reject(name, *given, std::to_string(least) + " to " + std::to_string(most));
    return otherwise;
}

inline std::chrono::seconds environment::seconds(std::string_view name,
                                                 std::chrono::seconds otherwise,
                                                 std::chrono::seconds least,
                                                 std::chrono::seconds most)
{
    return std::chrono::seconds(
        integer(name, otherwise.count(), least.count(), most.count()));
}

inline std::string environment::text(std::string_view name, std::string_view otherwise)
{
    return std::string(value(name).value_or(otherwise));
}

inline std::optional<std::string> environment::secret(std::string_view name, std::size_t least)
{
    const auto given = value(name);
    if (!given) return std::nullopt;
    bool printable = true;
    for (const char c : *given) printable = printable && c > ' ' && c != 0x7f;
    if (given->size() >= least && printable) return std::string(*given);
    complain(name, "is not shown",
             std::to_string(least) + " characters or more, without spaces, all of ASCII");
    return std::nullopt;
}

inline std::string environment::one_of(std::string_view name, std::string_view otherwise,
                                       std::initializer_list<std::string_view> words)
{
    const auto  given = text(name, otherwise);
    std::string allowed;
    for (const auto word : words) {
        if (word == given) return given;
        allowed.append(allowed.empty() ? "" : " or ").append(word);
    }
    reject(name, given, allowed);
    return std::string(otherwise);
}

inline std::vector<std::string> environment::ranges(std::string_view name)
{
    std::vector<std::string> found;
    auto                     rest = value(name).value_or("");
    while (!rest.empty()) {
        const auto entry = rest.substr(0, rest.find_first_of(", \t"));
        rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
        if (entry.empty()) continue;
        if (entry == "private" || entry == "unix" || cidr::parse(entry)) found.emplace_back(entry);
        else reject(name, entry, "addresses, ranges such as 10.0.0.0/8, private and unix");
    }
    return found;
}

inline listen_address environment::listen(std::string_view name, const listen_address& otherwise)
{
    const auto given = value(name);
    if (!given) return otherwise;
    if (const auto read = parse_listen_address(*given)) return *read;
    reject(name, *given, "ADDRESS:PORT or [IPV6]:PORT with a port of 0 to 65535");
    return otherwise;
}

inline void environment::reject(std::string_view name, std::string_view value,
                                std::string_view allowed)
{
    complain(name, "is " + detail::shown(value), allowed);
}

inline void environment::complain(std::string_view name, std::string_view what,
                                  std::string_view allowed)
{
    complaint_.append(complaint_.empty() ? "" : "; ").append(name).append(" ").append(what);
    complaint_.append(", allowed is ").append(allowed);
}

inline std::vector<std::string> environment::strangers(std::string_view prefix) const
{
    std::vector<std::string> found;
    for (auto entry = block_; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view line = *entry;
        const auto             name = line.substr(0, line.find('='));
        if (name.starts_with(prefix) && !asked_.contains(name)) found.emplace_back(name);
    }
    return found;
}

}  // namespace weir
