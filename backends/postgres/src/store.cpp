// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/store.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/invalid.hpp"
#include "weir/postgres/connector.hpp"
#include "weir/remote/attendant.hpp"
#include "weir/remote/digest.hpp"

namespace weir::postgres {
namespace {

[[noreturn]] void wrong(const std::string& what)
{
    detail::invalid("weir::postgres::store: " + what);
}

bool is_a_name(std::string_view schema)
{
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    return !schema.empty() && schema.size() < 64 && letter(schema.front()) &&
           std::ranges::all_of(schema, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// libpq's words on what it cannot read quote it, and a password may be in it. So may it where a
/// URL has one that is not written as URLs want it: what comes after its @ or / is read as the host
/// or the port then, and would be told with an attempt to connect there.
void check_conninfo(const std::string& conninfo)
{
    const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
        PQconninfoParse(conninfo.c_str(), nullptr), &PQconninfoFree);
    if (!parsed)
        wrong("conninfo cannot be read; \"host=… dbname=…\" or \"postgresql://…\" is allowed, "
              "as libpq takes it");
    for (const auto* one = parsed.get(); one->keyword != nullptr; ++one) {
        const std::string_view name     = one->keyword;
        const std::string_view value    = one->val ? one->val : "";
        const bool             mistaken = name == "host" ? value.find('@', 1) != value.npos
                                          : name == "port"
                                              ? value.find_first_not_of("0123456789,") != value.npos
                                              : false;
        if (mistaken)
            wrong("conninfo has a " + std::string(name) +
                  " that is none; in a URL an @ of a password is written %40, a / is %2F");
    }
}

const store_options& checked(const store_options& options)
{
    check_conninfo(options.conninfo);
    if (!is_a_name(options.schema))
        wrong("schema is \"" + options.schema +
              "\"; lower-case letters, digits and _ are allowed, 63 at most");
    if (options.deadline <= duration::zero()) wrong("deadline must be positive");
    if (options.patience <= duration::zero()) wrong("patience must be positive");
    if (options.connections < 1 || options.connections > 64)
        wrong("connections is " + std::to_string(options.connections) + "; 1 to 64 are allowed");
    if (options.waiting < 1) wrong("waiting must be at least 1");
    if (options.memo_longest < duration::zero() || options.keep < duration::zero())
        wrong("memo_longest and keep must not be negative");
    return options;
}

place place_of(const store_options& options)
{
    const auto in = options.schema + ".";
    return {.conninfo        = options.conninfo,
            .schema          = options.schema,
            .survives        = options.survives,
            .makes           = options.make_schema,
            .fingerprint     = remote::hash(options.key_secret, "weir: fingerprint of a secret"),
            .set_statement   = "SELECT " + in + "admit_set($1, $3, $2)",
            .sweep_statement = "SELECT * FROM " + in + "sweep($1, $2, $3)",
            .keep            = options.keep};
}

}  // namespace

manners::manners(const std::string& schema)
    : schema_(schema), look_{.statement = "SELECT * FROM " + schema + ".look($1)"},
      forget_{.statement = "SELECT * FROM " + schema + ".forget($1)"}
{
}

const remote::manner& manners::asks_of(std::string_view policy)
{
    const std::lock_guard held(mutex_);
    for (const auto& one : asks_)
        if (one.policy == policy) return one;
    const auto function = schema_ + ".ask_" + std::string(policy) + "($1, $2)";
    asks_.push_back({"SELECT * FROM " + function, "SELECT " + function, std::string(policy)});
    return asks_.back();
}

store::store(const store_options& options)
    : options_(checked(options)), place_(place_of(options)), manners_(options.schema),
      enrolled_(options.warn)
{
    if (options_.key_secret.empty() && options_.warn != nullptr) options_.warn(warning::no_secret);
    if (options_.named_statements)
        for (const auto name :
             {spending<fixed_window>::name, spending<sliding_window>::name, spending<gcra>::name,
              spending<lockout>::name})
            place_.named.push_back(&manners_.asks_of(name));

    remote::caretaker&         self = *this;
    std::vector<remote::line*> all;
    for (std::size_t n = 0; n < options_.connections; ++n) {
        lines_.push_back(std::make_unique<remote::line>(
            remote::line_options{.deadline = options_.deadline, .waiting = options_.waiting},
            self));
        all.push_back(lines_.back().get());
    }
    connector_ = std::make_unique<connector>(place_, all, options_.patience);
    connect();
}

remote::seat::time_point store::deadline() const noexcept
{
    return std::chrono::steady_clock::now() + options_.deadline;
}

void store::too_much(std::string_view name, std::uint64_t limit, duration window)
{
    detail::invalid("limiter \"" + std::string(name) + "\": the limit is " +
                    std::to_string(limit) + " and the window " + std::to_string(window.count()) +
                    " ns; postgres holds at most " + std::to_string(most_counted) +
                    " in a window of 100 years");
}

void store::connect()
{
    const auto until   = std::chrono::steady_clock::now() + options_.patience;
    bool       changed = false;
    try {
        for (auto& line : lines_) {
            auto made = std::make_unique<connection>(place_, until);
            changed |= made->secret_changed();
            line->mend(std::move(made));
        }
    } catch (const unreachable&) {
        if (!options_.start_unconnected) throw;
        connector_->lost();
    }
    if (changed && options_.warn != nullptr) options_.warn(warning::different_secrets);
}

/// First nobody connects any more, then nobody is served, then the lines go.
store::~store()
{
    if (!born_.here()) {
        leave_to_parent();
        return;
    }
    connector_->stop();
    owned_attendant_.reset();
    for (auto& line : lines_) line->close();
}

/// Threads that are not here cannot be waited for, and saying goodbye would end the parent's
/// sessions.
void store::leave_to_parent() noexcept
{
    (void)connector_.release();
    (void)owned_attendant_.release();
    for (auto& line : lines_) (void)line.release();
}

/// False where the system has no thread or descriptor for it: then callbacks hear the outage rule.
bool store::be_attended() noexcept
{
    if (attendant_.load(std::memory_order_acquire) != nullptr) return true;
    const std::lock_guard held(making_);
    if (owned_attendant_ != nullptr) return true;
    try {
        std::vector<remote::line*> all;
        for (auto& line : lines_) all.push_back(line.get());
        owned_attendant_ = std::make_unique<remote::attendant>(std::move(all));
    } catch (const std::exception&) {
        return false;
    }
    attendant_.store(owned_attendant_.get(), std::memory_order_release);
    owned_attendant_->poke();  // for a caller who left a trip to it before there was whom to poke
    return true;
}

/// Answers that need no trip count for the sweep as well, or a flood of refusals would keep the
/// rows of those who were refused.
void store::asked_without_a_trip(const key& who) noexcept
{
    thread_local std::uint32_t asks = 0;
    if (++asks % 1'024 == 0) line_of(who).sweep_soon();
}

void store::admit_set(std::span<const pending> set) noexcept
{
    const auto                 slots = std::make_unique<staged[]>(set.size());
    std::vector<remote::seat*> seats(set.size());
    bool                       refused = false;
    for (std::size_t n = 0; n < set.size(); ++n) {
        seats[n] = &slots[n];
        set[n].stage(&slots[n]);
        refused |= slots[n].here == staged::known::refusal;
    }
    if (!refused) ask_together(seats);
    const auto fits = [](const staged& one) { return one.answered && one.said.granted > 0; };
    const bool all  = std::all_of(slots.get(), slots.get() + set.size(), fits);
    for (std::size_t n = 0; n < set.size(); ++n) {
        auto& one = slots[n];
        if (refused && one.here == staged::known::nothing) one.here = staged::known::skipped;
        if (!all && fits(one)) one.here = staged::known::undone;
        set[n].resolve(&one,
                       one.here == staged::known::nothing || one.here == staged::known::refusal);
    }
}

void store::ask_together(std::span<remote::seat* const> seats) noexcept
{
    remote::seat head;
    head.set   = seats;
    head.until = deadline();
    line_of(seats.front()->asked.who).ask(head);
    for (auto* const one : seats) one->answered = head.answered;
}

bool store::marked(std::int64_t mark, std::vector<remote::seen_row>& rows) const
{
    const auto until = std::chrono::steady_clock::now() + options_.patience;
    try {
        rows = connection(place_, until).marked(mark, until);
    } catch (const unreachable&) {
        return false;
    } catch (const std::invalid_argument&) {  // a schema that is newer by now, or gone
        return false;
    }
    return true;
}

void store::lost() noexcept { connector_->lost(); }

void store::poke() noexcept
{
    if (auto* const one = attendant_.load(std::memory_order_acquire)) one->poke();
}

/// One line for each change of the store's state, however many connections it has.
void store::changed(bool answers) noexcept
{
    const auto before = answers ? away_.fetch_sub(1) : away_.fetch_add(1);
    const bool turns  = before == (answers ? 1U : 0U);
    if (turns && options_.warn != nullptr)
        options_.warn(answers ? warning::store_back : warning::store_away);
}

}  // namespace weir::postgres
