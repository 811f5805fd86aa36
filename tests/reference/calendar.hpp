// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calendar caps a second time: a search window by window over plain counts, and the case table, for
// whatever calendar there is.

#include "catch.hpp"
#include "reference/table.hpp"
#include "weir/policy/calendar_caps.hpp"

#include <chrono>
#include <ctime>
#include <cstdint>
#include <iomanip>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace reference {

/// `2026-01-05T09:59:59.999`, UTC.
inline weir::instant utc(const std::string& text)
{
    std::tm            parts{};
    std::istringstream in(text);
    in >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%S");
    if (in.fail()) throw std::runtime_error("no instant: " + text);
    using namespace std::chrono;
    const sys_days day = year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday;
    auto           at =
        weir::instant(day) + hours(parts.tm_hour) + minutes(parts.tm_min) + seconds(parts.tm_sec);
    if (const auto dot = text.find('.'); dot != text.npos)
        at += milliseconds(std::stoi(text.substr(dot + 1)));
    return at;
}

/// The day first, then the hour, one window after the other, over the releases that there are.
class naive_calendar {
public:
    explicit naive_calendar(const weir::calendar_caps& caps) : caps_(caps) {}

    std::optional<weir::instant> place(weir::instant at)
    {
        auto       candidate = at;
        const auto end       = hour_start(at) + caps_.horizon;
        while (candidate < end) {
            const auto slot = slot_from(candidate);
            if (by_day_[day_start(candidate)] >= caps_.per_day)
                candidate = day_start(candidate) + std::chrono::days(1);
            else if (by_hour_[hour_start(candidate)] >= caps_.per_hour || !slot)
                candidate = hour_start(candidate) + std::chrono::hours(1);
            else {
                taken_.insert(*slot);
                ++by_day_[day_start(*slot)];
                ++by_hour_[hour_start(*slot)];
                return *slot;
            }
        }
        return std::nullopt;
    }

    void give_back(weir::instant release)
    {
        --by_day_[day_start(release)];
        --by_hour_[hour_start(release)];
    }

private:
    static weir::instant hour_start(weir::instant at)
    {
        return std::chrono::floor<std::chrono::hours>(at);
    }
    weir::instant day_start(weir::instant at) const
    {
        return std::chrono::floor<std::chrono::days>(at - caps_.day_starts) + caps_.day_starts;
    }

    /// The first free instant of the hour from `from` on.
    std::optional<weir::instant> slot_from(weir::instant from) const
    {
        if (!caps_.spread) return from;
        for (std::uint32_t i = 0; i < caps_.per_hour; ++i) {
            const auto at =
                hour_start(from) + weir::duration(std::chrono::hours(1)) * i / caps_.per_hour;
            if (at >= from && !taken_.contains(at)) return at;
        }
        return std::nullopt;
    }

    weir::calendar_caps                    caps_;
    std::map<weir::instant, std::uint32_t> by_day_, by_hour_;
    std::set<weir::instant>                taken_;
};

/// "30@now 1@2026-01-05T10:00:00" as so many texts.
inline std::vector<std::pair<int, std::string>> counted(const std::string& cell)
{
    std::vector<std::pair<int, std::string>> all;
    std::istringstream                       words(cell);
    for (std::string word; words >> word;) {
        const auto at = word.find('@');
        all.emplace_back(std::stoi(word.substr(0, at)), word.substr(at + 1));
    }
    return all;
}

struct calendar_case {
    std::string                name;
    weir::calendar_caps        caps;
    std::vector<weir::instant> arrivals;
    std::vector<weir::instant> releases;
};

inline std::vector<calendar_case> calendar_cases()
{
    std::vector<calendar_case> all;
    for (const auto& cells_of : table("calendar.tsv", 5)) {
        auto& made = all.emplace_back(
            calendar_case{.name = cells_of[0], .caps = {}, .arrivals = {}, .releases = {}});
        made.caps.per_hour = static_cast<std::uint32_t>(std::stoul(cells_of[1]));
        made.caps.per_day  = static_cast<std::uint32_t>(std::stoul(cells_of[2]));
        for (const auto& [count, at] : counted(cells_of[3]))
            made.arrivals.insert(made.arrivals.end(), static_cast<std::size_t>(count), utc(at));
        for (const auto& [count, at] : counted(cells_of[4]))
            for (int i = 0; i < count; ++i)
                made.releases.push_back(at == "now" ? made.arrivals.at(made.releases.size())
                                                    : utc(at));
        if (made.arrivals.size() != made.releases.size())
            throw std::runtime_error("calendar.tsv: uneven row " + cells_of[0]);
    }
    return all;
}

/// Every case through `place(caps, at)`, which begins anew where `begins` was called.
template <class Begins, class Place>
void hold_calendar_cases(Begins&& begins, Place&& place)
{
    for (const auto& one : calendar_cases()) {
        INFO(one.name);
        begins(one);
        for (std::size_t i = 0; i < one.arrivals.size(); ++i) {
            INFO("arrival " << i + 1);
            const weir::placement found = place(one.arrivals[i]);
            REQUIRE(found);
            REQUIRE(found.release == one.releases[i]);
            REQUIRE((found.when == weir::placed::now) == (one.releases[i] == one.arrivals[i]));
        }
    }
}

}  // namespace reference
