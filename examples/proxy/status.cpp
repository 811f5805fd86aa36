// SPDX-License-Identifier: BSL-1.0

#include "status.hpp"

#include "lane.hpp"

#include <array>
#include <cstdio>
#include <sstream>

#include <nlohmann/json.hpp>

namespace proxy {

namespace {

using nlohmann::json;

std::string hexadecimal(const weir::key& one)
{
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
                  static_cast<unsigned long long>(one.high),
                  static_cast<unsigned long long>(one.low));
    return text.data();
}

json sums(const std::vector<const lane_figures*>& lanes)
{
    const auto sum = [&](figure lane_figures::*of) {
        std::int64_t all = 0;
        for (const auto* each : lanes) all += (each->*of).read();
        return all;
    };
    return {{"connections", sum(&lane_figures::connections)},
            {"requests", sum(&lane_figures::requests)},
            {"answered_by_plugins", sum(&lane_figures::answered)},
            {"cache_hits", sum(&lane_figures::cache_hits)},
            {"upstream_failures", sum(&lane_figures::failures)},
            {"permits_held", sum(&lane_figures::permits)}};
}

json shadow(const weir::http::shadow_log& of)
{
    const auto figures = of.figures();
    json       most    = json::array();
    for (const auto& one : of.most_refused())
        most.push_back({{"digest", hexadecimal(one.who)},
                        {"times", one.times},
                        {"at_most_too_high_by", one.too_far}});
    return {{"plugin", of.name()},      {"category", of.category()},  {"seen", figures.seen},
            {"logged", figures.logged}, {"skipped", figures.skipped}, {"most_refused", most}};
}

json upstreams(const origins& known)
{
    json all = json::array();
    for (const auto& each : known.all()) {
        std::ostringstream where;
        where << each->at;
        all.push_back({{"address", where.str()},
                       {"connections", each->connections.load()},
                       {"requests", each->requests.load()},
                       {"failures", each->failures.load()}});
    }
    return all;
}

}  // namespace

std::string status_page(state& of, const site& now)
{
    json page         = sums(of.boards);
    page["upstreams"] = upstreams(of.known);
    page["cache"]     = {{"bytes", of.cache.bytes()}};
    page["plugins"]   = json::array();
    for (const auto& each : now.plugins)
        page["plugins"].push_back({{"name", each.name}, {"about", each.about}});
    page["dry_run"] = json::array();
    const std::lock_guard lock(of.mutex);
    for (const auto& [name, log] : of.shadows) page["dry_run"].push_back(shadow(*log));
    return page.dump(2) + "\n";
}

}  // namespace proxy
