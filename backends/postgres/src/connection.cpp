// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/connection.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <random>
#include <string_view>
#include <utility>

#include "weir/postgres/arrays.hpp"

namespace weir::postgres {
namespace {

using clock    = std::chrono::steady_clock;
using progress = remote::wire::progress;

bool is_any_of(std::string_view code, std::initializer_list<std::string_view> codes) noexcept
{
    return std::ranges::find(codes, code) != codes.end();
}

/// The largest whole milliseconds that `poll` can be told.
int poll_time(connection::time_point until) noexcept
{
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

/// Of the text, for behind a pooler the session may have statements of another schema's store.
std::string name_of(const std::string& statement)
{
    return "weir_" + remote::hex(remote::hash("", statement)).substr(0, 16);
}

}  // namespace

void connection::close::operator()(pg_conn* db) const noexcept { PQfinish(db); }

void connection::clear::operator()(pg_result* made) const noexcept { PQclear(made); }

connection::connection(const place& where, time_point until) : place_(&where)
{
    connect(until);
    settle_schema(until);
    settle_functions(until);
    settle_secret(until);
    prepare_named(until);
    swept_to_ = static_cast<std::int64_t>(std::random_device{}() >> 8);  // not all from one page on
    for (auto& one : parameters_) one.reserve(remote::trip::most_rows * 6 * 12 + 20);
}

connection::~connection() = default;

int connection::descriptor() const noexcept { return PQsocket(db_.get()); }

// -- while it is opened: waits, and throws --------------------------------------------------------

/// libpq's messages name host, user and database, and never a password.
void connection::fail(const std::string& what, const pg_result* made) const
{
    std::string why = made ? PQresultErrorMessage(made) : PQerrorMessage(db_.get());
    while (!why.empty() && why.back() == '\n') why.pop_back();
    throw unreachable("weir::postgres: " + what + ": " + why);
}

void connection::wait(bool writing, time_point until)
{
    pollfd ready{
        .fd = descriptor(), .events = static_cast<short>(writing ? POLLOUT : POLLIN), .revents = 0};
    // An interrupted wait goes on: libpq takes any return for readiness, and might block.
    while (clock::now() < until) {
        const int come = ::poll(&ready, 1, poll_time(until));
        if (come > 0 || (come < 0 && errno != EINTR)) return;
    }
    throw unreachable("weir::postgres: the server does not answer in time");
}

void connection::connect(time_point until)
{
    db_.reset(PQconnectStart(place_->conninfo.c_str()));
    if (!db_ || PQstatus(db_.get()) == CONNECTION_BAD) fail("cannot connect");
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
        wait(next == PGRES_POLLING_WRITING, until);
        next = PQconnectPoll(db_.get());
        if (next == PGRES_POLLING_FAILED) fail("cannot connect");
    }
    PQsetnonblocking(db_.get(), 1);
    PQsetNoticeProcessor(
        db_.get(), [](void*, const char*) {}, nullptr);
}

connection::result connection::run(const std::string& sql, time_point until)
{
    if (PQsendQuery(db_.get(), sql.c_str()) == 0) fail("cannot ask");
    return finish(until);
}

/// The last result of what was sent, or the first error.
connection::result connection::finish(time_point until)
{
    while (PQflush(db_.get()) == 1) wait(true, until);
    for (result last;;) {
        while (PQisBusy(db_.get()) == 1) {
            wait(false, until);
            if (PQconsumeInput(db_.get()) == 0) fail("the connection broke");
        }
        result next(PQgetResult(db_.get()));
        if (!next) return last;
        if (!last || PQresultStatus(last.get()) != PGRES_FATAL_ERROR) last = std::move(next);
    }
}

/// Only where the server itself is at the other end: a pooler may have any session there, and then
/// one that has prepared this before, or (26000, see `judge`) one that has not.
void connection::prepare_named(time_point until)
{
    constexpr Oid types[] = {static_cast<Oid>(type::uuid), static_cast<Oid>(type::bigints)};
    for (const auto* const one : place_->named) {
        const auto name = name_of(one->single);
        if (PQsendPrepare(db_.get(), name.c_str(), one->single.c_str(), 2, types) == 0)
            fail("cannot prepare");
        const auto made  = finish(until);
        const auto state = PQresultErrorField(made.get(), PG_DIAG_SQLSTATE);
        if (state != nullptr && std::string_view(state) == "42P05") return names_.clear();
        if (PQresultStatus(made.get()) != PGRES_COMMAND_OK) fail("cannot prepare", made.get());
        names_.push_back(name);
    }
}

std::vector<remote::seen_row> connection::marked(std::int64_t mark, time_point until)
{
    parameters_[0].clear();
    append(parameters_[0], mark);
    if (!send_statement("SELECT * FROM " + place_->schema + ".marked($1)", {type::bigint}, 1))
        fail("cannot ask");
    const auto made = finish(until);
    if (PQresultStatus(made.get()) != PGRES_TUPLES_OK) fail("cannot list", made.get());
    std::vector<remote::seen_row> rows(static_cast<std::size_t>(PQntuples(made.get())));
    for (std::size_t n = 0; n < rows.size(); ++n) {
        const auto field = [&](int column) {
            return PQgetvalue(made.get(), static_cast<int>(n), column);
        };
        rows[n].who = {read_number(field(0)), read_number(field(0) + 8)};
        for (std::size_t i = 0; i < 3; ++i)
            rows[n].words[i] =
                static_cast<std::int64_t>(read_number(field(static_cast<int>(i) + 1)));
        rows[n].at = instant(duration(static_cast<std::int64_t>(read_number(field(4)))));
    }
    return rows;
}

// -- while it is used: neither waits nor throws ---------------------------------------------------

/// Between two trips the server has nothing to say, unless it says goodbye.
bool connection::usable() noexcept
{
    pollfd ready{.fd = descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, 0) == 0;
}

bool connection::flush() noexcept
{
    const int left = PQflush(db_.get());
    writes_        = left == 1;
    return left >= 0;
}

bool connection::send(const remote::trip& asked) noexcept
{
    come_ = progress::busy;
    switch (asked.carries) {
    case remote::trip::kind::ask:
        return send_asks(asked) && flush();
    case remote::trip::kind::set:
        return send_set(asked) && flush();
    case remote::trip::kind::sweep:
        return send_sweep() && flush();
    case remote::trip::kind::none:
        break;
    }
    return false;
}

void connection::write_numbers(const remote::row& of)
{
    for (const auto number :
         {static_cast<std::int64_t>(of.act), of.most, of.length, of.cost, of.times, of.lapses})
        append_element(parameters_[1], number);
}

/// In the order of keys. The names of the policies go along where rows of several meet.
void connection::write_rows(const remote::trip& asked)
{
    auto& [keys, numbers, policies] = parameters_;
    const auto count                = asked.parts().size();
    begin_array(keys, type::uuid, count);
    begin_array(numbers, type::bigint, 6 * count);
    if (asked.carries == remote::trip::kind::set) begin_array(policies, type::text, count);
    for (std::size_t n = 0; n < count; ++n) {
        const auto& row = asked.sorted(n).asked;
        append_element(keys, row.who);
        write_numbers(row);
        if (asked.carries == remote::trip::kind::set) append_element(policies, row.manner->policy);
    }
}

bool connection::send_asks(const remote::trip& asked) noexcept
{
    const bool runs = !asked.manner()->policy.empty();
    if (runs && asked.parts().size() == 1) return send_single(asked.sorted(0).asked);
    write_rows(asked);
    return send_statement(asked.manner()->statement, {type::uuids, type::bigints}, runs ? 2 : 1);
}

bool connection::send_single(const remote::row& asked) noexcept
{
    parameters_[0].clear();
    append(parameters_[0], asked.who.high);
    append(parameters_[0], asked.who.low);
    begin_array(parameters_[1], type::bigint, 6);
    write_numbers(asked);
    const auto known = std::ranges::find(place_->named, asked.manner);
    if (!names_.empty() && known != place_->named.end())
        return send_named(static_cast<std::size_t>(known - place_->named.begin()));
    return send_statement(asked.manner->single, {type::uuid, type::bigints}, 2);
}

bool connection::send_set(const remote::trip& asked) noexcept
{
    write_rows(asked);
    return send_statement(place_->set_statement, {type::uuids, type::bigints, type::texts}, 3);
}

bool connection::send_sweep() noexcept
{
    const std::int64_t numbers[] = {swept_to_, place_->sweep_blocks, place_->keep.count()};
    for (std::size_t n = 0; n < parameters_.size(); ++n) {
        parameters_[n].clear();
        append(parameters_[n], numbers[n]);
    }
    return send_statement(place_->sweep_statement, {type::bigint, type::bigint, type::bigint}, 3);
}

/// Unnamed, and parsed each time: a session behind a pooler is another one at each transaction.
bool connection::send_statement(const std::string& sql, std::array<type, 3> types,
                                int count) noexcept
{
    Oid         kinds[3];
    const char* values[3];
    int         lengths[3];
    const int   binary[3] = {1, 1, 1};
    for (std::size_t n = 0; n < 3; ++n) {
        kinds[n]   = static_cast<Oid>(types[n]);
        values[n]  = parameters_[n].data();
        lengths[n] = static_cast<int>(parameters_[n].size());
    }
    return PQsendQueryParams(db_.get(), sql.c_str(), count, kinds, values, lengths, binary, 1) == 1;
}

bool connection::send_named(std::size_t statement) noexcept
{
    const char* const values[]  = {parameters_[0].data(), parameters_[1].data()};
    const int         lengths[] = {static_cast<int>(parameters_[0].size()),
                                   static_cast<int>(parameters_[1].size())};
    const int         binary[]  = {1, 1};
    return PQsendQueryPrepared(db_.get(), names_[statement].c_str(), 2, values, lengths, binary,
                               1) == 1;
}

remote::wire::progress connection::advance(remote::trip& asked) noexcept
{
    // Of a connection that ends, what it said before it did still holds if that was an error.
    const auto ended = [&] { return come_ == progress::undone ? come_ : progress::broken; };
    if (writes_ && !flush()) return ended();
    if (PQconsumeInput(db_.get()) == 0) return ended();
    while (PQisBusy(db_.get()) == 0) {
        const result made(PQgetResult(db_.get()));
        if (!made) return come_ == progress::busy ? progress::broken : come_;
        if (PQresultStatus(made.get()) == PGRES_TUPLES_OK)
            come_ = read(made.get(), asked) ? progress::answered : progress::broken;
        else come_ = come_ == progress::busy ? judge(made.get()) : progress::broken;
    }
    return PQstatus(db_.get()) == CONNECTION_BAD ? ended() : progress::busy;
}

/// What an error means for the asks and for the connection (PostgreSQL, appendix A).
remote::wire::progress connection::judge(const pg_result* made) noexcept
{
    const char* const field = PQresultErrorField(made, PG_DIAG_SQLSTATE);
    const auto        code  = std::string_view(field ? field : "08000");
    if (is_any_of(code, {"40001", "40P01"})) return progress::again;
    if (is_any_of(code, {"55P03", "57014"})) return progress::locked;
    if (code == "26000") {  // there is a pooler after all
        names_.clear();
        return progress::again;
    }
    // Another server, or a schema made anew, may answer a new connection: this one is read-only,
    // has lost its schema, or was ended by the administrator before it was done.
    if (is_any_of(code, {"25006", "42P01", "3F000", "42883", "57P01"})) return progress::undone;
    if (code.starts_with("08") || code.starts_with("57P")) return progress::broken;
    return progress::refused;
}

/// False for what is no answer to what was asked: nothing of it is believed then.
bool connection::read(const pg_result* made, remote::trip& asked) noexcept
{
    if (asked.carries == remote::trip::kind::sweep) return read_sweep(made);
    if (PQnfields(made) == 1) return read_array(made, asked);
    const auto count = asked.parts().size();
    if (PQnfields(made) != 6 || PQntuples(made) != static_cast<int>(count)) return false;
    for (std::size_t n = 0; n < count; ++n)
        if (!read_row(made, static_cast<int>(n), asked.sorted(n))) return false;
    return true;
}

/// Five numbers for each part.
bool connection::read_array(const pg_result* made, remote::trip& asked) noexcept
{
    const auto count = asked.parts().size();
    const auto size  = array_head + 5 * count * array_number;
    if (PQntuples(made) != 1 || PQgetlength(made, 0, 0) != static_cast<int>(size)) return false;
    const char* at   = PQgetvalue(made, 0, 0) + array_head;
    const auto  next = [&] {
        const auto number = static_cast<std::int64_t>(read_number(at + array_number - 8));
        at += array_number;
        return number;
    };
    for (std::size_t n = 0; n < count; ++n) {
        auto& said = asked.sorted(n).said;
        said       = {.found = true, .callers = asked.sorted(n).asked.times};
        for (auto& word : said.after) word = next();
        said.granted = next();
        said.at      = instant(duration(next()));
    }
    return true;
}

bool connection::read_row(const pg_result* made, int at, remote::trip::part& of) noexcept
{
    const auto field = [&](int n) { return PQgetvalue(made, at, n); };
    if (PQgetlength(made, at, 0) != 16 || PQgetlength(made, at, 5) != 8) return false;
    if (key{read_number(field(0)), read_number(field(0) + 8)} != of.asked.who) return false;
    of.said = {.callers = of.asked.times,
               .at      = instant(duration(static_cast<std::int64_t>(read_number(field(5)))))};
    if (PQgetisnull(made, at, 4) == 1) return true;
    for (int n = 1; n < 5; ++n)
        if (PQgetlength(made, at, n) != 8) return false;
    of.said.found = true;
    for (std::size_t n = 0; n < of.said.after.size(); ++n)
        of.said.after[n] = static_cast<std::int64_t>(read_number(field(static_cast<int>(n) + 1)));
    of.said.granted = static_cast<std::int64_t>(read_number(field(4)));
    of.said.fresh   = of.said.granted < 0;
    return true;
}

bool connection::read_sweep(const pg_result* made) noexcept
{
    if (PQntuples(made) != 1 || PQnfields(made) < 1 || PQgetlength(made, 0, 0) != 8) return false;
    swept_to_ = static_cast<std::int64_t>(read_number(PQgetvalue(made, 0, 0)));
    return true;
}

}  // namespace weir::postgres
