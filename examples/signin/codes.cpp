// SPDX-License-Identifier: BSL-1.0

#include "codes.hpp"

#include "random_text.hpp"

#include "weir/remote/digest.hpp"

#include <charconv>
#include <cstdint>
#include <system_error>

namespace signin {

namespace {

std::int64_t second_of(weir::instant at)
{
    return std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
}

}  // namespace

std::string derived(std::string_view secret, std::string_view purpose)
{
    const auto bytes = weir::remote::hash(secret, purpose);
    return std::string(bytes.begin(), bytes.end());
}

codes::codes(std::string_view secret, std::chrono::seconds lifetime)
    : key_(derived(secret, "weir-signin codes")), lifetime_(lifetime)
{
}

codes::issued codes::issue(std::string_view user, weir::instant at) const
{
    const auto end   = std::to_string(second_of(at) + lifetime_.count());
    const auto begin = end + '.' + random_text(16);
    return {begin + '.' + signature("ticket", user, begin), code_of(user, begin)};
}

std::optional<std::string> codes::opened_by(std::string_view user, std::string_view ticket,
                                            std::string_view code, weir::instant at) const
{
    const auto dot   = ticket.find('.');
    const auto last  = ticket.rfind('.');
    const auto begin = ticket.substr(0, last);
    const bool whole = dot != ticket.npos && dot < last;
    const bool ours  = same(ticket.substr(whole ? last + 1 : 0), signature("ticket", user, begin));
    const bool right = same(code, code_of(user, begin));
    if (!whole || !ours || !right) return std::nullopt;

    std::int64_t end  = 0;
    const auto   read = std::from_chars(ticket.data(), ticket.data() + dot, end);
    if (read.ec != std::errc{} || second_of(at) >= end) return std::nullopt;
    return std::string(ticket.substr(dot + 1, last - dot - 1));
}

/// Neither a user's name nor what a ticket begins with has a line feed.
std::string codes::signature(std::string_view purpose, std::string_view user,
                             std::string_view begin) const
{
    std::string text(purpose);
    text.append("\n").append(user).append("\n").append(begin);
    return weir::remote::hex(weir::remote::hash(key_, text));
}

std::string codes::code_of(std::string_view user, std::string_view begin) const
{
    const auto    digits = signature("code", user, begin);
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + 16, number, 16);
    const auto six = std::to_string(1'000'000 + number % 1'000'000);  // 2^64 is even enough
    return six.substr(1);
}

/// Compares digests: how far they agree tells nothing of the texts.
bool codes::same(std::string_view a, std::string_view b) const
{
    return weir::remote::hash(key_, a) == weir::remote::hash(key_, b);
}

}  // namespace signin
