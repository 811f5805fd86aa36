// SPDX-License-Identifier: BSL-1.0
#pragma once

// What tests of SQL share: a connection, and a schema of a test's own in the cluster that the
// environment names in WEIR_POSTGRES (tests/tools/postgres starts one).

#include <libpq-fe.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace scratch {

/// Connection words of the cluster; more of them may follow.
inline std::string cluster()
{
    const char* const named = std::getenv("WEIR_POSTGRES");
    if (named == nullptr)
        throw std::runtime_error("WEIR_POSTGRES is not set: see tests/tools/postgres");
    return named;
}

/// What came back: a value is text, or absent for NULL.
struct answer {
    std::string                                          error = {};  ///< The SQLSTATE, if any.
    std::string                                          said  = {};  ///< What the server said.
    std::vector<std::vector<std::optional<std::string>>> rows  = {};

    [[nodiscard]] std::int64_t number(std::size_t row = 0, std::size_t column = 0) const
    {
        return std::stoll(rows.at(row).at(column).value());
    }
};

/// A connection, as a program or an operator has one. Not thread-safe.
class session {
public:
    explicit session(const std::string& more = "")
        : connection_(PQconnectdb((cluster() + " " + more).c_str()))
    {
        if (PQstatus(connection_) != CONNECTION_OK)
            throw std::runtime_error(PQerrorMessage(connection_));
        on_notice([](void*, const char*) {}, nullptr);
    }
    ~session() { PQfinish(connection_); }
    session(const session&)            = delete;
    session& operator=(const session&) = delete;

    /// One statement with parameters, or many without.
    answer run(const std::string& sql, const std::vector<std::string>& parameters = {})
    {
        if (parameters.empty()) return taken(PQexec(connection_, sql.c_str()));
        std::vector<const char*> values;
        for (const auto& value : parameters) values.push_back(value.c_str());
        return taken(PQexecParams(connection_, sql.c_str(), static_cast<int>(values.size()),
                                  nullptr, values.data(), nullptr, nullptr, 0));
    }

    /// As `run`, but an error is the test's end.
    answer must(const std::string& sql, const std::vector<std::string>& parameters = {})
    {
        auto made = run(sql, parameters);
        if (!made.error.empty()) throw std::runtime_error(made.error + " " + made.said);
        return made;
    }

    /// Sends, and waits for nothing.
    void send(const std::string& sql)
    {
        if (PQsendQuery(connection_, sql.c_str()) == 0) throw std::runtime_error("not sent");
    }

    /// What came of what was sent.
    answer finish()
    {
        auto made = taken(PQgetResult(connection_));
        while (auto* const more = PQgetResult(connection_)) PQclear(more);
        return made;
    }

    /// What the server says beside answers goes there.
    void on_notice(PQnoticeProcessor heard, void* with)
    {
        PQsetNoticeProcessor(connection_, heard, with);
    }

    [[nodiscard]] int process() const { return PQbackendPID(connection_); }

private:
    static answer taken(PGresult* result)
    {
        answer made;
        if (const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
            made.error = state;
            made.said  = PQresultErrorMessage(result);
        }
        for (int row = 0; row < PQntuples(result); ++row) {
            auto& values = made.rows.emplace_back();
            for (int column = 0; column < PQnfields(result); ++column)
                if (PQgetisnull(result, row, column)) values.emplace_back();
                else values.emplace_back(PQgetvalue(result, row, column));
        }
        PQclear(result);
        return made;
    }

    PGconn* connection_;
};

/// Whether `sleeper` waits for a lock of somebody within ten seconds.
inline bool waits(session& watcher, const session& sleeper)
{
    for (int tries = 0; tries < 10'000; ++tries) {
        const auto seen =
            watcher.must("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $1",
                         {std::to_string(sleeper.process())});
        if (seen.rows.at(0).at(0) == "t") return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

/// The whole text of the store's SQL, for a schema of another name.
inline std::string text_for(const std::string& schema)
{
    std::ifstream     file(WEIR_POSTGRES_SQL);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return std::regex_replace(text, std::regex("\\bweir\\b"), schema);
}

/// A schema of its own for a test, so that tests run side by side.
class schema {
public:
    explicit schema(const std::string& name, const std::string& more = "")
        : name_(name + "_" + std::to_string(getpid())), more_(more)
    {
        session(more_).must(text_for(name_));
    }
    ~schema()
    {
        try {
            session(more_).run("DROP SCHEMA " + name_ + " CASCADE");
        } catch (const std::runtime_error&) {  // the cluster is gone, and the schema with it
        }
    }
    schema(const schema&)            = delete;
    schema& operator=(const schema&) = delete;

    /// The name of something in it.
    [[nodiscard]] std::string operator/(const std::string& thing) const
    {
        return name_ + "." + thing;
    }
    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string name_, more_;
};

/// A list as an array of SQL.
template <class List>
std::string array_of(const List& list)
{
    std::string text;
    for (const auto& value : list) {
        text += text.empty() ? "" : ",";
        if constexpr (requires { std::to_string(value); }) text += std::to_string(value);
        else text += value;
    }
    return "{" + text + "}";
}

/// The n-th key of a test. Keys sort as their numbers do.
inline std::string key(unsigned n)
{
    auto digits = std::to_string(n);
    return "00000000-0000-0000-0000-" + std::string(12 - digits.size(), '0') + digits;
}

}  // namespace scratch
