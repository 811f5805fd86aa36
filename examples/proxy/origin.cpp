// SPDX-License-Identifier: BSL-1.0

#include "origin.hpp"

#include "weir/config/document.hpp"

#include <stdexcept>
#include <string_view>
#include <utility>

namespace proxy {

namespace {

/// `host:port` or `[::1]:port`.
std::pair<std::string, std::string> split(const std::string& addr)
{
    const auto colon = addr.rfind(':');
    if (colon == addr.npos) return {addr, "80"};
    auto host = addr.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return {host, addr.substr(colon + 1)};
}

}  // namespace

std::shared_ptr<origin> origins::at(const tcp::endpoint& where)
{
    const std::lock_guard lock(mutex_);
    auto&                 known = known_[where];
    if (!known) {
        known     = std::make_shared<origin>();
        known->at = where;
        known->id = known_.size() - 1;
    }
    return known;
}

std::vector<std::shared_ptr<origin>> origins::all() const
{
    const std::lock_guard                lock(mutex_);
    std::vector<std::shared_ptr<origin>> found;
    for (const auto& [where, one] : known_) found.push_back(one);
    return found;
}

upstream::upstream(upstream_settings chosen, origins& known) : chosen_(std::move(chosen))
{
    asio::io_context once;
    tcp::resolver    resolver(once);
    for (const auto& addr : chosen_.addrs) {
        const auto [host, port] = split(addr);
        error_code failed;
        const auto found = resolver.resolve(host, port, failed);
        if (failed || found.empty())
            throw std::invalid_argument("addrs names " + weir::config::shown(addr) +
                                        ", which has no address: " + failed.message());
        for (const auto& each : found) origins_.push_back(known.at(each.endpoint()));
    }
}

}  // namespace proxy
