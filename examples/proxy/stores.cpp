// SPDX-License-Identifier: BSL-1.0

#include "stores.hpp"

#if WEIR_PROXY_POSTGRES
#include "weir/postgres/store.hpp"
#endif

#include <exception>

namespace proxy {

#if WEIR_PROXY_POSTGRES
struct shared_stores::opened {
    explicit opened(const store_settings& of)
        : chosen(of),
          store({.conninfo = of.conninfo, .key_secret = of.secret, .start_unconnected = true})
    {
    }

    store_settings        chosen;
    weir::postgres::store store;
};
#else
struct shared_stores::opened {};
#endif

shared_stores::shared_stores()  = default;
shared_stores::~shared_stores() = default;

void shared_stores::open(weir::config::document& from, const std::vector<store_settings>& chosen,
                         [[maybe_unused]] weir::http::counters& in)
{
    for (const auto& one : chosen) {
        const auto table = from.root().child("stores").child(one.name);
#if WEIR_PROXY_POSTGRES
        if (const auto known = opened_.find(one.name); known != opened_.end()) {
            if (known->second->chosen != one)
                table.warn("type", "this store has changed, which waits for a restart");
            continue;
        }
        try {
            auto made = std::make_unique<opened>(one);
            in.add(one.name, made->store);
            opened_[one.name] = std::move(made);
        } catch (const std::exception& failed) {
            table.reject("type", failed.what());
        }
#else
        table.reject("type", "this program was built without the store on PostgreSQL");
#endif
    }
}

}  // namespace proxy
