// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/calendar.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "weir/invalid.hpp"
#include "weir/postgres/texts.hpp"
#include "weir/postgres/within.hpp"

namespace weir::postgres {
namespace {

enum column { release_at_, judged_, hour_, slot_, known_from_, known_until_, steps_ };

std::int64_t number(const pg_result* made, int column)
{
    const char* const text  = PQgetvalue(made, 0, column);
    std::int64_t      value = 0;
    std::from_chars(text, text + std::strlen(text), value);
    return value;
}

std::string array_of(const calendar_caps& caps)
{
    return '{' + std::to_string(caps.per_hour) + ',' + std::to_string(caps.per_day) + ',' +
           (caps.spread ? "1," : "0,") + std::to_string(caps.day_starts.count()) + ',' +
           std::to_string(caps.horizon.count() * 24) + '}';
}

std::string ticks(instant at) { return std::to_string(at.time_since_epoch().count()); }

placement read(const pg_result* made)
{
    placement found{.when  = placed::no_window,
                    .steps = static_cast<std::uint32_t>(number(made, steps_))};
    if (PQgetisnull(made, 0, hour_)) return found;
    found.release = instant(duration(number(made, release_at_)));
    found.when = number(made, release_at_) == number(made, judged_) ? placed::now : placed::later;
    found.hour = number(made, hour_);
    found.slot = static_cast<std::uint32_t>(number(made, slot_));
    return found;
}

}  // namespace

calendar::calendar(pg_conn* by, std::string name, const calendar_caps& caps,
                   calendar_options options)
    : name_(std::move(name)), schema_(std::move(options.schema)), caps_(caps),
      caps_text_(array_of(caps))
{
    if (const auto wrong = caps.complaint(); !wrong.empty()) detail::invalid(wrong);
    within::settle(by, schema_, "calendar", texts::calendar, options.make_schema);
}

placement calendar::place(pg_conn* within) { return place_from(within, nullptr); }

placement calendar::place(pg_conn* within, instant at)
{
    const auto text = ticks(at);
    return place_from(within, &text);
}

placement calendar::place_from(pg_conn* within, const std::string* at)
{
    if (!within::in_transaction(within)) return {};
    const auto full = known_full();
    const auto made = within::ask(
        within,
        "SELECT * FROM " + schema_ + ".place($1, $2, false, " + (at ? *at : "NULL") + ", $3, $4)",
        {name_, caps_text_, std::to_string(full.from), std::to_string(full.until)});
    if (!made) return {};
    if (!PQgetisnull(made.get(), 0, known_until_))
        learn(number(made.get(), known_from_), number(made.get(), known_until_));
    return read(made.get());
}

detail::full_run calendar::known_full()
{
    const std::lock_guard held(turn_);
    return full_;
}

void calendar::learn(std::int64_t from, std::int64_t until)
{
    const std::lock_guard held(turn_);
    full_.learn(from, until);
}

bool calendar::enqueue(pg_conn* within, const key& source, std::string_view item)
{
    return item.find('\0') == item.npos && within::in_transaction(within) &&
           within::ask(within, "SELECT " + schema_ + ".enqueue($1, $2, $3)",
                       {name_, within::uuid(source), std::string(item)});
}

std::vector<std::string> calendar::release(pg_conn* within, std::size_t most)
{
    return release_at(within, most, nullptr);
}

std::vector<std::string> calendar::release(pg_conn* within, std::size_t most, instant at)
{
    const auto text = ticks(at);
    return release_at(within, most, &text);
}

std::vector<std::string> calendar::release_at(pg_conn* within, std::size_t most,
                                              const std::string* at)
{
    constexpr std::size_t    bound = std::numeric_limits<std::int32_t>::max();
    std::vector<std::string> gone;
    if (!within::in_transaction(within)) return gone;
    const auto made = within::ask(
        within, "SELECT " + schema_ + ".release($1, $2, " + (at ? *at : "NULL") + ", $3)",
        {name_, caps_text_, std::to_string(std::min(most, bound))});
    for (int row = 0; made && row < PQntuples(made.get()); ++row)
        gone.emplace_back(PQgetvalue(made.get(), row, 0));
    return gone;
}

bool calendar::sweep(pg_conn* by, instant at)
{
    const auto oldest = detail::hour_of(saturating_add(at, -std::chrono::hours(48)));
    return within::ask(by, "SELECT " + schema_ + ".forget_places($1, $2)",
                       {name_, std::to_string(oldest)}) != nullptr;
}

}  // namespace weir::postgres
