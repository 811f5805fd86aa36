// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the routes share: one of it in a process.

#include "gate.hpp"
#include "mail/links.hpp"
#include "settings.hpp"
#include "storage/records.hpp"

#include "weir/extract/client_ip.hpp"
#include "weir/forms/honeypot.hpp"
#include "weir/forms/render_token.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace signup {

/// Connections for whoever serves a request: as many as are used at once. Thread-safe.
class pool {
public:
    explicit pool(storage& on) : on_(on) {}

    /// `work(records&)` with a connection of its own; one that failed is not used again.
    template <class Work>
    auto with(Work work)
    {
        auto                  mine   = take();
        auto                  result = work(*mine);
        const std::lock_guard held(mutex_);
        idle_.push_back(std::move(mine));
        return result;
    }

private:
    std::unique_ptr<records> take()
    {
        {
            const std::lock_guard held(mutex_);
            while (!idle_.empty()) {
                auto last = std::move(idle_.back());
                idle_.pop_back();
                if (last->usable()) return last;
            }
        }
        return std::make_unique<records>(on_);
    }

    storage&                              on_;
    std::mutex                            mutex_;
    std::vector<std::unique_ptr<records>> idle_;
};

/// Throws storage_error and std::invalid_argument if it cannot start.
struct service {
    explicit service(const settings& from)
        : chosen(from),
          database(names_postgres(from.database) ? postgres_storage(from) : sqlite_storage(from)),
          kept(*database), limits(make_gate(from)), link(from.url, from.secret),
          source(from.client), tokens({.secret  = from.secret,
                                       .purpose = "weir-signup form",
                                       .min_age = from.form_min_age,
                                       .max_age = from.form_max_age}),
          trap({.css_class = "elsewhere", .lenient_after = lenient(from)})
    {
    }

    settings                 chosen;
    std::unique_ptr<storage> database;
    pool                     kept;
    std::unique_ptr<gate>    limits;
    links                    link;
    weir::client_ip          source;
    weir::render_token       tokens;
    weir::honeypot           trap;
    std::function<void()>    on_queued = [] {};  ///< A mail may be due now.

private:
    static std::optional<weir::duration> lenient(const settings& from)
    {
        if (from.trap_lenient == seconds(0)) return std::nullopt;
        return from.trap_lenient;
    }
};

}  // namespace signup
