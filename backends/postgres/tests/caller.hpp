// SPDX-License-Identifier: BSL-1.0
#pragma once

// A caller of calendar and spent_tokens, with transactions of his own.

#include <libpq-fe.h>

#include <stdexcept>
#include <string>

#include "stores.hpp"

namespace scratch {

/// A connection as a server's own code has one. Not thread-safe.
class caller {
public:
    caller() : db_(PQconnectdb((cluster() + off_the_disk).c_str()))
    {
        if (PQstatus(db_) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(db_));
        PQsetNoticeProcessor(
            db_, [](void*, const char*) {}, nullptr);
    }
    ~caller() { PQfinish(db_); }
    caller(const caller&)            = delete;
    caller& operator=(const caller&) = delete;

    operator PGconn*() const { return db_; }

    bool run(const std::string& sql)
    {
        auto* const made = PQexec(db_, sql.c_str());
        const bool  done =
            PQresultStatus(made) == PGRES_COMMAND_OK || PQresultStatus(made) == PGRES_TUPLES_OK;
        PQclear(made);
        return done;
    }

private:
    PGconn* db_;
};

}  // namespace scratch
