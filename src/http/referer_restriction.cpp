// SPDX-License-Identifier: BSL-1.0

#include "patterns.hpp"
#include "weir/extract/client_ip.hpp"
#include "weir/invalid.hpp"

#include <algorithm>
#include <utility>

namespace weir::http {
namespace {

constexpr std::size_t longest_host = 253;  // RFC 1035 section 2.3.4, as text

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A host in the one form in which hosts are compared: lower case, without the dot of the root, an
/// IPv6 address in brackets and as RFC 5952 writes it. None for what is no host.
std::optional<std::string> plain_host(std::string_view host)
{
    if (host.starts_with('[') && host.ends_with(']')) {
        const auto inside = weir::address::parse(host.substr(1, host.size() - 2));
        if (!inside) return std::nullopt;
        return "[" + to_string(*inside) + "]";
    }
    if (host.ends_with('.')) host.remove_suffix(1);
    const auto may_stand = [](char c) {
        return is_letter(c) || weir::detail::is_digit(c) || c == '.' || c == '-' || c == '_';
    };
    if (host.empty() || host.size() > longest_host || !std::ranges::all_of(host, may_stand))
        return std::nullopt;
    std::string out(host);
    for (auto& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    return out;
}

/// The host of a URL with an authority: RFC 3986 section 3.
std::optional<std::string> host_of(std::string_view url)
{
    const auto colon = url.find("://");
    if (colon == url.npos || colon == 0 || !is_letter(url[0])) return std::nullopt;
    for (const char c : url.substr(0, colon))
        if (!is_letter(c) && !weir::detail::is_digit(c) && c != '+' && c != '-' && c != '.')
            return std::nullopt;

    auto authority = url.substr(colon + 3);
    authority      = authority.substr(0, authority.find_first_of("/?#"));
    for (const char c : authority)
        if (c <= ' ' || c == 0x7f || c == '\\') return std::nullopt;
    if (const auto user = authority.rfind('@'); user != authority.npos)
        authority.remove_prefix(user + 1);

    const auto bracket = authority.rfind(']');
    const auto port    = authority.find(':', bracket == authority.npos ? 0 : bracket);
    if (port != authority.npos)
        for (const char c : authority.substr(port + 1))
            if (!weir::detail::is_digit(c)) return std::nullopt;
    return plain_host(authority.substr(0, port));
}

}  // namespace

bool is_referer_entry(std::string_view entry)
{
    if (entry == "*") return true;
    return plain_host(entry.starts_with("*.") ? entry.substr(2) : entry).has_value();
}

referer_restriction::referer_restriction(referer_restriction_options options, shadow_log* log)
    : options_(std::move(options)), log_(log)
{
    for (std::size_t i = 0; i < options_.referer_list.size(); ++i) {
        const std::string_view entry = options_.referer_list[i];
        if (!is_referer_entry(entry))
            detail::invalid("referer_restriction: referer_list[" + std::to_string(i) + "] is " +
                            detail::shown(entry) +
                            "; allowed is a host, *. and a host, or *, without scheme and path");
        if (entry == "*") any_ = true;
        else if (entry.starts_with("*.")) below_.insert(*plain_host(entry.substr(2)));
        else hosts_.insert(*plain_host(entry));
    }
}

bool referer_restriction::listed(std::string_view referer) const
{
    const auto host = host_of(referer);
    if (!host) return false;
    if (any_ || hosts_.contains(*host)) return true;
    const std::string_view whole = *host;
    for (auto dot = whole.find('.'); dot != whole.npos; dot = whole.find('.', dot + 1))
        if (dot > 0 && below_.contains(whole.substr(dot + 1))) return true;
    return false;
}

std::optional<answer> referer_restriction::admit(const visit& who, instant at) const
{
    std::string matched;
    const auto  is_listed = [&](std::string_view line) { return listed(line); };
    if (!stops(who.from, "Referer", options_.type, matched, is_listed)) return std::nullopt;
    return refused(who, {.status = 403, .reason = options_.message, .matched = matched},
                   options_.dry_run, log_, at);
}

}  // namespace weir::http
