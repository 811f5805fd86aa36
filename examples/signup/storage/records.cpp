// SPDX-License-Identifier: BSL-1.0

#include "storage/records.hpp"

#include <algorithm>
#include <chrono>

namespace signup {

namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;

/// A worker looks every second: what it takes within this time of its due instant came in time, and
/// counts in the hour that it was placed in.
constexpr auto in_time = minutes(1);

std::int64_t number_of(weir::instant at)
{
    return std::chrono::floor<microseconds>(at.time_since_epoch()).count();
}

weir::instant instant_of(std::int64_t number) { return weir::instant(microseconds(number)); }

weir::instant start_of_day(const weir::calendar_caps& caps, weir::instant at)
{
    const auto hour = weir::detail::hour_of(at);
    return weir::detail::start_of_hour(
        weir::detail::first_hour(caps, weir::detail::day_of(caps, hour)));
}

/// $1 claim, $2 end of the lease, $3 end of the link, $4 what was due before is late, $5 now, $6
/// how many.
std::string claiming(std::string_view which, std::string_view skipping_locked)
{
    return "UPDATE signup_mails SET claim = $1, lease_until = $2, tries = tries + 1,"
           " perhaps_twice = CASE WHEN begun_at IS NULL THEN perhaps_twice ELSE 1 END,"
           " begun_at = NULL, expires_at = $3, released_at = coalesce(released_at,"
           " CASE WHEN due_at >= $4 THEN due_at ELSE $5 END)"
           " WHERE id IN (SELECT id FROM signup_mails WHERE sent_at IS NULL"
           " AND given_up IS NULL AND due_at <= $5 AND lease_until <= $5 AND " +
           std::string(which) + " ORDER BY due_at, id LIMIT $6" + std::string(skipping_locked) +
           ")";
}

mail read_mail(const row& from, const std::string& claim)
{
    return {.id            = from.text(0),
            .kind          = from.text(1),
            .to            = from.text(2),
            .claim         = claim,
            .confirmed     = from.has(3),
            .perhaps_twice = from.integer(4) != 0,
            .tries         = from.integer(5),
            .expires       = instant_of(from.integer(6))};
}

receipt refused(weir::token_use use)
{
    if (use == weir::token_use::failed) throw storage_error("spent tokens: no answer");
    return use == weir::token_use::again ? receipt::token_used : receipt::token_full;
}

}  // namespace

/// Commits what was stored or repeated, and undoes all else: a form that is handed back has not
/// used up its token.
template <class Work>
receipt records::transacted(Work work)
{
    on_->begin();
    const auto outcome = work(on_->now());  // who waited for his turn comes when it is his
    if (outcome == receipt::stored || outcome == receipt::repeated || outcome == receipt::unknown)
        on_->commit();
    else on_->rollback();
    return outcome;
}

receipt records::apply(const application& made, const weir::token_check& token)
{
    return transacted([&](weir::instant at) { return apply_within(made, token, at); });
}

receipt records::apply_within(const application& made, const weir::token_check& token,
                              weir::instant at)
{
    const auto row =
        on_->run("INSERT INTO signup_applications"
                 " (id, canonical, email, name, about, received_at)"
                 " VALUES ($1, $2, $3, $4, $5, $6)"
                 " ON CONFLICT (canonical) DO NOTHING RETURNING id",
                 {made.id, made.canonical, made.email, made.name, made.about, number_of(at)});
    if (row.empty()) return answer_again(made.canonical, "repeated", token, at);

    if (const auto use = on_->spend(token.id, token.expires, at); use != weir::token_use::first)
        return refused(use);
    const auto place = on_->place(at);
    if (place.when == weir::placed::failed) throw storage_error("calendar: no answer");
    if (!place) return receipt::no_window;
    add_event(made.id, "submission_received", at, place.deferred_until());
    add_mail(made.id, "verify", true, place.release);
    return receipt::stored;
}

receipt records::reissue(std::string_view canonical, const weir::token_check& token)
{
    return transacted(
        [&](weir::instant at) { return answer_again(canonical, "reissued", token, at); });
}

receipt records::answer_again(std::string_view canonical, std::string_view event,
                              const weir::token_check& token, weir::instant at)
{
    if (const auto use = on_->spend(token.id, token.expires, at); use != weir::token_use::first)
        return refused(use);
    const auto found = on_->run("SELECT id, (SELECT count(*) FROM signup_mails"
                                " WHERE application = signup_applications.id AND sent_at IS NULL"
                                " AND given_up IS NULL) FROM signup_applications"
                                " WHERE canonical = $1",
                                {canonical});
    if (found.empty()) return receipt::unknown;
    const auto id = found.front().text(0);
    add_event(id, event, at);
    if (found.front().integer(1) == 0) add_mail(id, "repeat", false, at);
    return receipt::repeated;
}

receipt records::revise(const application& changed, const weir::token_check& token)
{
    return transacted([&](weir::instant at) {
        const auto use = on_->spend(token.id, token.expires, at);
        if (use != weir::token_use::first) return refused(use);
        const auto found = on_->run("UPDATE signup_applications SET name = $2, about = $3"
                                    " WHERE id = $1 RETURNING id",
                                    {changed.id, changed.name, changed.about});
        if (found.empty()) return receipt::unknown;
        add_event(changed.id, "revised", at);
        add_mail(changed.id, "revised", false, at);
        return receipt::stored;
    });
}

void records::add_event(std::string_view application, std::string_view kind, weir::instant at,
                        std::optional<weir::instant> deferred_until)
{
    if (deferred_until)
        on_->run("INSERT INTO signup_events (application, kind, at, deferred_until)"
                 " VALUES ($1, $2, $3, $4)",
                 {application, kind, number_of(at), number_of(*deferred_until)});
    else
        on_->run("INSERT INTO signup_events (application, kind, at) VALUES ($1, $2, $3)",
                 {application, kind, number_of(at)});
}

void records::add_mail(std::string_view application, std::string_view kind, bool counted,
                       weir::instant due)
{
    on_->run("INSERT INTO signup_mails (id, application, kind, counted, due_at)"
             " VALUES ($1, $2, $3, $4, $5)",
             {random_id(), application, kind, std::int64_t{counted}, number_of(due)});
}

std::optional<challenge> records::challenge_of(std::string_view mail_id)
{
    const auto found = on_->run(
        "SELECT a.id, a.canonical, a.email, a.name, a.about, a.confirmed_at, m.expires_at"
        " FROM signup_mails m JOIN signup_applications a ON a.id = m.application WHERE m.id = $1",
        {mail_id});
    if (found.empty()) return std::nullopt;
    const auto& it = found.front();
    return challenge{.of        = {.id        = it.text(0),
                                   .canonical = it.text(1),
                                   .email     = it.text(2),
                                   .name      = it.text(3),
                                   .about     = it.text(4)},
                     .expires   = instant_of(it.integer(6)),
                     .confirmed = it.has(5)};
}

bool records::confirm(std::string_view application_id)
{
    on_->begin();
    const auto at    = number_of(on_->now());
    const auto found = on_->run("UPDATE signup_applications SET confirmed_at ="
                                " coalesce(confirmed_at, $2) WHERE id = $1 RETURNING confirmed_at",
                                {application_id, at});
    if (!found.empty() && found.front().integer(0) == at)
        add_event(application_id, "confirmed", instant_of(at));
    on_->commit();
    return !found.empty();
}

/// How many first mails may still leave in the hour and the day of `at`.
std::int64_t records::room(const weir::calendar_caps& caps, weir::instant at)
{
    const auto left = [&](weir::instant from, hours length, std::uint32_t cap) {
        const auto found = on_->run("SELECT count(*) FROM signup_mails WHERE counted = 1"
                                    " AND released_at >= $1 AND released_at < $2",
                                    {number_of(from), number_of(from + length)});
        return std::int64_t{cap} - found.at(0).integer(0);
    };
    const auto hour = weir::detail::start_of_hour(weir::detail::hour_of(at));
    return std::max<std::int64_t>(0,
                                  std::min(left(hour, hours(1), caps.per_hour),
                                           left(start_of_day(caps, at), hours(24), caps.per_day)));
}

std::vector<mail> records::claim(const weir::calendar_caps& caps, std::size_t most,
                                 weir::duration lease, weir::duration link_life)
{
    on_->begin();
    on_->one_at_a_time();
    const auto at    = on_->now();
    const auto token = random_id();
    const auto until = number_of(at + lease), expires = number_of(at + link_life);
    const auto take = [&](std::string_view which, std::int64_t limit) {
        on_->run(claiming(which, on_->skipping_locked()),
                 {token, until, expires, number_of(at - in_time), number_of(at), limit});
    };
    const auto limit = static_cast<std::int64_t>(most);
    take("(counted = 0 OR released_at IS NOT NULL)", limit);
    take("counted = 1 AND released_at IS NULL", std::min(room(caps, at), limit));
    const auto taken = on_->run(
        "SELECT m.id, m.kind, a.email, a.confirmed_at, m.perhaps_twice, m.tries, m.expires_at"
        " FROM signup_mails m JOIN signup_applications a ON a.id = m.application"
        " WHERE m.claim = $1 ORDER BY m.due_at, m.id",
        {token});
    on_->commit();

    std::vector<mail> found;
    for (const auto& it : taken) found.push_back(read_mail(it, token));
    return found;
}

bool records::begin(const mail& one, weir::duration lease)
{
    const auto at = on_->now();
    return !on_->run("UPDATE signup_mails SET begun_at = $3, lease_until = $4"
                     " WHERE id = $1 AND claim = $2 AND lease_until > $3 AND sent_at IS NULL"
                     " RETURNING id",
                     {one.id, one.claim, number_of(at), number_of(at + lease)})
                .empty();
}

/// Whoever has it by now: it is gone, and need not go again.
void records::sent(const mail& one)
{
    on_->run("UPDATE signup_mails SET sent_at = coalesce(sent_at, $2) WHERE id = $1",
             {one.id, number_of(on_->now())});
}

void records::put_back(const mail& one, weir::duration wait, bool perhaps_gone)
{
    on_->run("UPDATE signup_mails SET lease_until = $3,"
             " begun_at = CASE WHEN $4 = 1 THEN begun_at ELSE NULL END"
             " WHERE id = $1 AND claim = $2",
             {one.id, one.claim, number_of(on_->now() + wait), std::int64_t{perhaps_gone}});
}

void records::give_up(const mail& one, std::string_view why)
{
    on_->run("UPDATE signup_mails SET given_up = $3, begun_at = NULL WHERE id = $1 AND claim = $2",
             {one.id, one.claim, why});
}

backlog records::look_back(const weir::calendar_caps& caps)
{
    backlog    made{.at = on_->now()};
    const auto since = number_of(start_of_day(caps, made.at)), at = number_of(made.at);
    // What is late counts where it can go first: now. An hour is 3,600,000,000 of our units.
    for (const auto& it :
         on_->run("SELECT hour, sum(queued), sum(sent) FROM ("
                  "SELECT CASE WHEN due_at < $2 THEN $2 ELSE due_at END / 3600000000 AS hour,"
                  " 1 AS queued, 0 AS sent FROM signup_mails WHERE counted = 1 AND sent_at IS NULL"
                  " AND given_up IS NULL UNION ALL SELECT released_at / 3600000000, 0, 1"
                  " FROM signup_mails WHERE counted = 1 AND sent_at IS NOT NULL"
                  " AND released_at >= $1) AS each_mail GROUP BY hour ORDER BY hour",
                  {since, at}))
        made.hours.push_back({.hour   = it.integer(0),
                              .queued = static_cast<std::uint64_t>(it.integer(1)),
                              .sent   = static_cast<std::uint64_t>(it.integer(2))});
    const auto totals = on_->run(
        "SELECT coalesce(sum(CASE WHEN sent_at IS NULL AND given_up IS NULL THEN 1 ELSE 0 END), 0),"
        " coalesce(sum(CASE WHEN sent_at IS NULL AND given_up IS NULL AND due_at < $1"
        " THEN 1 ELSE 0 END), 0), coalesce(sum(perhaps_twice), 0), count(given_up),"
        " max(CASE WHEN sent_at IS NULL AND given_up IS NULL THEN due_at END) FROM signup_mails",
        {number_of(made.at - in_time)});
    const auto& it     = totals.at(0);
    made.waiting       = static_cast<std::uint64_t>(it.integer(0));
    made.late          = static_cast<std::uint64_t>(it.integer(1));
    made.perhaps_twice = static_cast<std::uint64_t>(it.integer(2));
    made.given_up      = static_cast<std::uint64_t>(it.integer(3));
    if (it.has(4)) made.last_due = instant_of(it.integer(4));
    return made;
}

}  // namespace signup
