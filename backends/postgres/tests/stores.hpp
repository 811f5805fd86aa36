// SPDX-License-Identifier: BSL-1.0
#pragma once

// Stores of tests: patient ones, in a schema or a database of a test's own.

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "session.hpp"
#include "weir/policy.hpp"
#include "weir/postgres/store.hpp"

namespace scratch {

/// A window that no run of a test sees the end of: they end in 2010 and 2049.
inline constexpr weir::duration for_ever = std::chrono::years(40);

inline const std::string secret = "a secret of thirty-two bytes....";

/// What docs/postgresql.md tells to set on the role.
inline const std::string off_the_disk = " options='-c synchronous_commit=off' ";

/// Options of a store of tests: it can wait long, so that a busy machine is no outage. `more` are
/// words of the connection.
inline weir::postgres::store_options in(const std::string& schema, const std::string& more = "")
{
    return {.conninfo   = cluster() + off_the_disk + more,
            .key_secret = secret,
            .deadline   = std::chrono::seconds(20),
            .schema     = schema,
            .patience   = std::chrono::seconds(60)};
}

/// The same, and all that is asked goes to the server.
inline weir::postgres::store_options without_memory(weir::postgres::store_options options)
{
    options.memo_longest = {};
    return options;
}

/// The name of a schema that a store will make, which goes away with it.
class future_schema {
public:
    explicit future_schema(const std::string& name) : name_(name + "_" + std::to_string(getpid()))
    {
    }
    ~future_schema()
    {
        try {
            session().run("DROP SCHEMA IF EXISTS " + name_ + " CASCADE");
        } catch (const std::runtime_error&) {  // the cluster is gone, and the schema with it
        }
    }
    future_schema(const future_schema&)            = delete;
    future_schema& operator=(const future_schema&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }

private:
    std::string name_;
};

/// A database of a test's own, empty.
class database {
public:
    explicit database(const std::string& name)
        : name_("weir_" + name + "_" + std::to_string(getpid()))
    {
        session().must("CREATE DATABASE " + name_);
    }
    ~database()
    {
        try {
            session().run("DROP DATABASE " + name_ + " WITH (FORCE)");
        } catch (const std::runtime_error&) {
        }
    }
    database(const database&)            = delete;
    database& operator=(const database&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::string        words() const { return "dbname=" + name_; }

private:
    std::string name_;
};

/// So many callbacks are awaited. It may go as soon as a wait has returned.
class countdown {
public:
    explicit countdown(std::size_t callbacks) : left_(callbacks) {}

    void one_less()
    {
        const std::lock_guard held(turn_);
        if (--left_ == 0) done_.notify_one();
    }
    void wait()
    {
        std::unique_lock held(turn_);
        done_.wait(held, [&] { return left_ == 0; });
    }

private:
    std::mutex              turn_;
    std::condition_variable done_;
    std::size_t             left_;
};

/// Counts the statements that write to the counters of a schema.
class statement_counter {
public:
    statement_counter(session& by, const std::string& schema) : by_(&by), schema_(schema)
    {
        by.must("CREATE SEQUENCE " + schema +
                ".statements;"
                "CREATE FUNCTION " +
                schema +
                ".count() RETURNS trigger LANGUAGE plpgsql AS $$"
                "BEGIN PERFORM nextval('" +
                schema +
                ".statements'); RETURN NULL; END $$;"
                "CREATE TRIGGER counts BEFORE INSERT ON " +
                schema +
                ".counters "
                "FOR EACH STATEMENT EXECUTE FUNCTION " +
                schema + ".count()");
    }

    [[nodiscard]] std::int64_t operator()() const
    {
        return by_
            ->must("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM " + schema_ +
                   ".statements")
            .number();
    }

private:
    session*    by_;
    std::string schema_;
};

}  // namespace scratch
