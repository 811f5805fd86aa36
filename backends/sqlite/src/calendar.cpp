// SPDX-License-Identifier: BSL-1.0

#include "weir/sqlite/calendar.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "weir/invalid.hpp"
#include "weir/sqlite/texts.hpp"
#include "weir/sqlite/within.hpp"

namespace weir::sqlite {
namespace {

constexpr std::int64_t of_hour = 1;
constexpr std::int64_t of_day  = 24;

std::string text_of(const calendar_caps& caps)
{
    return std::to_string(caps.per_hour) + ' ' + std::to_string(caps.per_day) + ' ' +
           (caps.spread ? "spread " : "") + std::to_string(caps.day_starts.count());
}

/// The counts of one calendar, as detail::first_room asks for them.
class ledger {
public:
    ledger(sqlite3* by, const std::string& name, const calendar_caps& caps)
        : by_(by), name_(name), caps_(caps), look_(by, texts::calendar_look)
    {
    }

    [[nodiscard]] std::uint32_t next_of_hour(std::int64_t hour) { return used(of_hour, hour); }
    [[nodiscard]] std::uint32_t used_of_day(std::int64_t day) { return used(of_day, day); }

    /// False if it could not be written.
    bool take(const placement& place)
    {
        const auto day = detail::day_of(caps_, place.hour);
        return keep(of_day, day, used_of_day(day) + 1) && keep(of_hour, place.hour, place.slot + 1);
    }

    [[nodiscard]] bool failed() const { return look_.failed(); }

private:
    std::uint32_t used(std::int64_t span, std::int64_t number)
    {
        return look_.run({name_, span, number}) ? static_cast<std::uint32_t>(look_.number(0)) : 0;
    }
    bool keep(std::int64_t span, std::int64_t number, std::int64_t used)
    {
        return within::did(by_, texts::calendar_keep, {name_, span, number, used});
    }

    sqlite3*             by_;
    std::string_view     name_;
    const calendar_caps& caps_;
    within::query        look_;
};

bool read_full(sqlite3* by, const std::string& name, detail::full_run& full)
{
    within::query known(by, texts::calendar_full);
    const bool    found = known.run({std::string_view(name)});
    if (found) full = {known.number(0), known.number(1)};
    return found;
}

}  // namespace

calendar::calendar(sqlite3* by, std::string name, const calendar_caps& caps)
    : name_(std::move(name)), caps_(caps), caps_text_(text_of(caps))
{
    if (const auto wrong = caps.complaint(); !wrong.empty()) detail::invalid(wrong);
    within::settle(by, "calendar", texts::calendar_schema);
}

placement calendar::place(sqlite3* within, instant at)
{
    detail::full_run full;
    if (!within::in_transaction(within) ||
        !within::did(within, texts::calendar_open, {name_, caps_text_}) ||
        !read_full(within, name_, full))
        return {};
    ledger     used(within, name_, caps_);
    const auto before = full;
    const auto found  = detail::first_room(caps_, used, full, at);
    if (used.failed() || (found && !used.take(found))) return {};
    const bool learned = full.from != before.from || full.until != before.until;
    if (learned && !within::did(within, texts::calendar_learn, {name_, full.from, full.until}))
        return {};
    return found;
}

bool calendar::enqueue(sqlite3* within, const key& source, std::string_view item)
{
    return within::in_transaction(within) &&
           within::did(within, texts::calendar_queue_source, {name_, source}) &&
           within::did(within, texts::calendar_queue_item, {name_, source, item});
}

std::vector<std::string> calendar::release(sqlite3* within, std::size_t most, instant at)
{
    std::vector<std::string> gone;
    if (!within::in_transaction(within) ||
        !within::did(within, texts::calendar_open, {name_, caps_text_}))
        return gone;
    ledger        used(within, name_, caps_);
    within::query head(within, texts::calendar_head), unqueue(within, texts::calendar_unqueue);
    std::int64_t  round = -1;
    while (gone.size() < most && head.run({name_})) {
        const auto place = detail::room_now(caps_, used, at);
        if (!place || !used.take(place)) break;
        round = head.number(1);
        gone.push_back(head.text(2));
        const auto arrived = head.number(0);
        unqueue.run({arrived});
    }
    if (round >= 0 && (!within::did(within, texts::calendar_round, {name_, round}) ||
                       !within::did(within, texts::calendar_forget_sources, {name_, round})))
        gone.clear();
    if (used.failed() || head.failed() || unqueue.failed()) gone.clear();
    return gone;
}

bool calendar::sweep(sqlite3* by, instant at)
{
    const auto oldest = detail::hour_of(saturating_add(at, -std::chrono::hours(48)));
    return within::did(by, texts::calendar_forget, {name_, of_hour, oldest}) &&
           within::did(by, texts::calendar_forget, {name_, of_day, detail::day_of(caps_, oldest)});
}

}  // namespace weir::sqlite
