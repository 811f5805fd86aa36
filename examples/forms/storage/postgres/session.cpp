// SPDX-License-Identifier: BSL-1.0

#include "storage/postgres/session.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include <poll.h>

namespace forms::postgres {

namespace {

/// libpq's messages name host, user and database, and no password.
std::string one_line(std::string text)
{
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::ranges::replace(text, '\n', ' ');
    return text;
}

bool begins_with_any_of(std::string_view code, std::initializer_list<std::string_view> these)
{
    return std::ranges::any_of(these, [&](std::string_view one) { return code.starts_with(one); });
}

}  // namespace

void text_array::add(const std::optional<std::string>& text)
{
    if (written_.size() > 1) written_ += ',';
    if (!text) {
        written_ += "NULL";
        return;
    }
    written_ += '"';
    for (const char c : *text) {
        if (c == '"' || c == '\\') written_ += '\\';
        written_ += c;
    }
    written_ += '"';
}

int rows::size() const noexcept
{
    return PQntuples(made_.get());
}

std::string rows::text(int row, int column) const
{
    return {PQgetvalue(made_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(made_.get(), row, column))};
}

std::int64_t rows::integer(int row, int column) const
{
    std::int64_t number = 0;
    const auto   digits = text(row, column);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
}

bool rows::truth(int row, int column) const
{
    return text(row, column) == "t";
}

void rows::clear::operator()(pg_result* made) const noexcept
{
    PQclear(made);
}

void session::close::operator()(pg_conn* db) const noexcept
{
    PQfinish(db);
}

session::session(const std::string& conninfo, time_point until)
{
    // The first stands for all that the URL does not say, and the last goes before what it says.
    constexpr const char* names[] = {"fallback_application_name", "dbname", "client_encoding",
                                     nullptr};
    const char* const     values[] = {"weir-forms", conninfo.c_str(), "UTF8", nullptr};
    db_.reset(PQconnectStartParams(names, values, 1));
    if (!db_ || PQstatus(db_.get()) == CONNECTION_BAD) fail("cannot connect");
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK;) {
        wait(next == PGRES_POLLING_WRITING, until);
        next = PQconnectPoll(db_.get());
        if (next == PGRES_POLLING_FAILED) fail("cannot connect");
    }
    PQsetnonblocking(db_.get(), 1);
    PQsetNoticeProcessor(db_.get(), [](void*, const char*) {}, nullptr);
    const auto* const encoding = PQparameterStatus(db_.get(), "server_encoding");
    if (encoding != nullptr && std::string_view(encoding) != "UTF8")
        throw lost(std::string("the database is in ") + encoding + ", and must be in UTF8");
}

rows session::run(const char* sql, const std::vector<std::string>& values, time_point until)
{
    std::vector<const char*> texts;
    for (const auto& each : values) texts.push_back(each.c_str());
    if (PQsendQueryParams(db_.get(), sql, static_cast<int>(texts.size()), nullptr, texts.data(),
                          nullptr, nullptr, 0) == 0)
        fail("cannot ask");
    return checked(finish(until));
}

void session::execute(const std::string& sql, time_point until)
{
    if (PQsendQuery(db_.get(), sql.c_str()) == 0) fail("cannot ask");
    checked(finish(until));
}

bool session::usable() const noexcept
{
    pollfd ready{.fd = PQsocket(db_.get()), .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, 0) == 0;
}

void session::fail(const std::string& doing) const
{
    throw lost(doing + ": " + one_line(PQerrorMessage(db_.get())));
}

void session::wait(bool writing, time_point until) const
{
    pollfd     ready{.fd      = PQsocket(db_.get()),
                     .events  = static_cast<short>(writing ? POLLOUT | POLLIN : POLLIN),
                     .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(std::min(left, 60'000L))) == 0)
        throw lost("the server does not answer in time");
}

/// The last result of what was sent, or the first error. While a long statement is sent, what the
/// server says is read, or both would wait.
rows session::finish(time_point until)
{
    for (int more = PQflush(db_.get()); more != 0; more = PQflush(db_.get())) {
        if (more < 0) fail("the connection broke");
        wait(true, until);
        if (PQconsumeInput(db_.get()) == 0) fail("the connection broke");
    }
    rows last(nullptr);
    while (true) {
        while (PQisBusy(db_.get()) == 1) {
            wait(false, until);
            if (PQconsumeInput(db_.get()) == 0) fail("the connection broke");
        }
        rows next(PQgetResult(db_.get()));
        if (next.get() == nullptr) return last;
        if (last.get() == nullptr || PQresultStatus(last.get()) != PGRES_FATAL_ERROR)
            last = std::move(next);
    }
}

/// What an error means (PostgreSQL, appendix A): about the values (22, 54), about this moment (40,
/// 53, 55, 57014), or about the connection. The last includes that a table is not there or may not
/// be written: another server may answer a new one.
rows session::checked(rows made) const
{
    const auto status = PQresultStatus(made.get());
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return made;
    const char* const  field = PQresultErrorField(made.get(), PG_DIAG_SQLSTATE);
    const auto         code  = std::string_view(field ? field : "08000");
    const char* const  first = PQresultErrorField(made.get(), PG_DIAG_MESSAGE_PRIMARY);
    const std::string  why   = one_line(first ? first : PQresultErrorMessage(made.get()));
    if (begins_with_any_of(code, {"22", "54"})) throw storage_refused(why);
    if (begins_with_any_of(code, {"40", "53", "55", "57014"})) throw storage_error(why);
    throw lost(why);
}

}  // namespace forms::postgres
