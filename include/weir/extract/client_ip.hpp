// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who is calling: the peer, or what proxies of our own wrote about whom they heard from. Never a
// value that an untrusted party wrote.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/extract/cidr.hpp"
#include "weir/extract/client.hpp"
#include "weir/extract/forwarded.hpp"
#include "weir/extract/request.hpp"
#include "weir/extract/trusted_peers.hpp"
#include "weir/invalid.hpp"
#include "weir/warning.hpp"

namespace weir {

/// Whom to believe. Nobody is trusted unless it is said here. Member order is API.
struct client_ip_options {
    /// How many proxies of your own every request passes. Each appends the address it heard from,
    /// so the client is that many elements from the right. One too many lets clients choose their
    /// key; without `trusted`, so does a port that is reachable past the proxies.
    int trusted_hops = 0;

    /// Your proxies: addresses, ranges (`10.0.0.0/8`), `private` (see `private_networks()`) and
    /// `unix` (a peer on a Unix socket, which is trusted only if named). Together with
    /// `trusted_hops`: that many steps at most, and never past the first address not listed.
    std::vector<std::string> trusted = {};

    /// `X-Forwarded-For`, `Forwarded`, or with `edge_replaces_header` any one header. No other is
    /// read.
    std::string header = "X-Forwarded-For";

    /// Says that the edge overwrites this header whatever a client sends in it, so that its one
    /// element (of the two lists: the first) is the client.
    bool edge_replaces_header = false;

    int prefix = 64;  ///< Bits of an IPv6 address that are one client: 1 to 128.

    /// Says that the proxy appends within one header line. Needed only with servers that drop
    /// repeated lines (`line_fidelity::later_dropped`): there, a proxy that adds a line of its own
    /// leaves us the line of the client.
    bool proxy_joins_lines = false;

    /// Told once of each warning that this instance sees; must be thread-safe. Null: nobody.
    warning_listener warn = &warn_on_stderr;
};

/// Finds the client of a request:
///
///     weir::client_ip source({.trusted_hops = 1});
///     per_ip.admit(source(request));
///
/// Thread-safe; allocates nothing per request; linear in the length of the header and in the number
/// of trusted ranges. Reads the last 32 lines and 256 elements of the header at most. While nobody
/// is trusted it looks for the header until it has seen one, to warn, and never believes it.
class client_ip {
public:
    static constexpr int most_hops = element_walk::most_elements;

    /// Throws std::invalid_argument, naming the option, its value and what is allowed.
    explicit client_ip(const client_ip_options& options = {});

    /// The walk starts at the peer and goes through the header from the right:
    /// - a peer that is unknown or not trusted is not asked for more: the client is the peer;
    /// - no header at all: the peer, not degraded; fewer elements than hops: the peer, degraded;
    /// - an element that is no address stops it at the last trusted address, degraded;
    /// - all addresses trusted: the leftmost, since an internal caller is a caller.
    [[nodiscard]] client operator()(const request& from) const;

    /// What was seen to be misconfigured until now. Thread-safe; allocates.
    [[nodiscard]] std::vector<warning> warnings() const;

private:
    using reached = std::optional<address>;  // the last trusted address of the walk

    bool   has_list() const noexcept { return !trusted_.empty(); }
    bool   believes(const peer& from) const noexcept;
    client walk(reached at, element_walk& elements) const noexcept;
    client unreadable(const reached& at, const reached& peer, int step,
                      element_walk& elements) const noexcept;
    client edge(const reached& at, element_walk& elements) const noexcept;
    client made(const reached& at, std::optional<degradation> why = std::nullopt) const noexcept;
    void   see(warning what) const;

    trusted_peers    trusted_;
    int              hops_;
    std::string      header_;
    list_grammar     grammar_;
    bool             is_list_;
    bool             edge_;
    int              prefix_;
    bool             one_line_;  // repeated lines do not occur, so none can have been dropped
    warning_listener warn_;

    mutable std::atomic<unsigned> seen_ = 0;  // one bit for each warning; a hint, hence relaxed
};

// ---------------------------------------------------------------------------------------------

namespace detail {

inline void check_range(std::string_view option, int value, int least, int most)
{
    if (value >= least && value <= most) return;
    invalid("client_ip: " + std::string(option) + " is " + std::to_string(value) + "; allowed is " +
            std::to_string(least) + " to " + std::to_string(most));
}

inline bool is_token(std::string_view text) noexcept
{
    const auto taken = take_token(text);
    return !taken.empty() && text.empty();
}

}  // namespace detail

inline client_ip::client_ip(const client_ip_options& options)
    : trusted_("client_ip", options.trusted), hops_(options.trusted_hops), header_(options.header),
      grammar_(same_header_name(header_, "Forwarded") ? list_grammar::forwarded
                                                      : list_grammar::plain),
      is_list_(grammar_ == list_grammar::forwarded || same_header_name(header_, "X-Forwarded-For")),
      edge_(options.edge_replaces_header), prefix_(options.prefix),
      one_line_(options.proxy_joins_lines || edge_), warn_(options.warn)
{
    detail::check_range("trusted_hops", hops_, 0, most_hops);
    detail::check_range("prefix", prefix_, 1, 128);
    if (!detail::is_token(header_))
        detail::invalid("client_ip: header is " + detail::shown(header_) +
                        "; allowed is the name of one header");
    if (!is_list_ && !edge_)
        detail::invalid("client_ip: header is " + detail::shown(header_) +
                        "; allowed is X-Forwarded-For or Forwarded, or with edge_replaces_header "
                        "a header that the edge overwrites");
    // With an overwritten header a hop count says nothing more than that there is an edge.
    if (edge_) detail::check_range("trusted_hops with edge_replaces_header", hops_, 0, !is_list_);

    if (covers(trusted_.ranges(), cidr(address::from_v4({}), 0)) ||
        covers(trusted_.ranges(),
               cidr(*address::parse("2000::"), 3)))  // all of global unicast, RFC 4291
        see(warning::trust_covers_everything);
}

inline client client_ip::operator()(const request& from) const
{
    auto at = from.peer().address();
    if (at && at->is_unspecified()) at.reset();
    if (hops_ == 0 && !has_list() && !edge_) {
        const auto ignored = 1U << static_cast<unsigned>(warning::forwarded_header_ignored);
        if ((seen_.load(std::memory_order_relaxed) & ignored) == 0)
            from.for_each_line(header_,
                               [&](std::string_view) { see(warning::forwarded_header_ignored); });
        return made(at);
    }
    if (!believes(from.peer())) return made(at);
    if (!has_list() && !is_private(*at)) see(warning::hops_with_public_peer);

    element_walk elements(from, header_, grammar_);
    if (elements.lines() == 0) return made(at);
    if (from.lines() == line_fidelity::any_order && elements.lines() > 1)
        return made(at, degradation::line_order_unknown);
    if (from.lines() == line_fidelity::later_dropped && !one_line_)
        return made(at, degradation::lines_may_be_missing);
    return edge_ ? edge(at, elements) : walk(at, elements);
}

inline bool client_ip::believes(const peer& from) const noexcept
{
    if (has_list() || from.is_unix_socket()) return trusted_.hold(from);
    return !from.is_unknown() && !from.address()->is_unspecified();
}

inline client client_ip::walk(reached at, element_walk& elements) const noexcept
{
    const auto peer = at;
    for (int step = 1;; ++step) {
        const auto element = elements.next();
        if (!element && elements.cut()) return made(at, degradation::list_too_long);
        if (!element && hops_ > 0) return made(peer, degradation::list_too_short);
        if (!element) return made(at);

        const auto found = read_element(*element, grammar_);
        if (!found) return unreadable(at, peer, step, elements);
        if (step == hops_ || (has_list() && !trusted_.hold(*found))) return made(found);
        at = found;
    }
}

/// A list that is too short for the hops tells us nothing, readable or not, so the peer stands.
inline client client_ip::unreadable(const reached& at, const reached& peer, int step,
                                    element_walk& elements) const noexcept
{
    while (step < hops_ && elements.next()) ++step;
    return step < hops_ && !elements.cut() ? made(peer, degradation::list_too_short)
                                           : made(at, degradation::element_unreadable);
}

inline client client_ip::edge(const reached& at, element_walk& elements) const noexcept
{
    auto first = elements.next();
    if (!first) return made(at, degradation::list_too_short);
    while (const auto further = elements.next()) {
        if (!is_list_) return made(at, degradation::too_many_elements);
        first = further;
    }
    if (elements.cut()) return made(at, degradation::list_too_long);
    const auto found = read_element(*first, grammar_);
    return found ? made(found) : made(at, degradation::element_unreadable);
}

inline client client_ip::made(const reached& at, std::optional<degradation> why) const noexcept
{
    if (!at) return client(why.value_or(degradation::no_peer_address));
    return client(*at, prefix_, why);
}

inline void client_ip::see(warning what) const
{
    const auto bit = 1U << static_cast<unsigned>(what);
    if ((seen_.load(std::memory_order_relaxed) & bit) != 0) return;
    if ((seen_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0 && warn_ != nullptr)
        warn_(what);
}

inline std::vector<warning> client_ip::warnings() const
{
    std::vector<warning> out;
    const auto           seen = seen_.load(std::memory_order_relaxed);
    for (unsigned bit = 0; seen >> bit != 0; ++bit)
        if ((seen >> bit & 1U) != 0) out.push_back(static_cast<warning>(bit));
    return out;
}

}  // namespace weir
