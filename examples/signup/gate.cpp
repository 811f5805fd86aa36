// SPDX-License-Identifier: BSL-1.0

#include "gate.hpp"

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/sliding_window.hpp"
#include "weir/postgres/store.hpp"
#include "weir/store/memory.hpp"

#include <chrono>
#include <utility>

namespace signup {

namespace {

weir::sliding_window policy(const limit_settings& of)
{
    return {.limit = of.requests, .window = of.window};
}

template <class Store>
class gate_on final : public gate {
public:
    gate_on(std::unique_ptr<Store> counters, const settings& chosen)
        : counters_(std::move(counters)), most_cost_(chosen.per_client.requests),
          client_("signup.client", policy(chosen.per_client), *counters_,
                  {.on_outage = weir::fail_closed}),
          address_("signup.address", policy(chosen.per_address), *counters_,
                   {.on_outage = weir::fail_closed})
    {
    }

    /// A cost over the limit could never be paid.
    weir::decision admit(const weir::client& who, std::string_view canonical,
                         std::uint64_t cost) noexcept override
    {
        return weir::admit_all(
            {client_(who, {.cost = std::min(cost, most_cost_)}), address_(canonical)});
    }

private:
    std::unique_ptr<Store>                     counters_;
    std::uint64_t                              most_cost_;
    weir::limiter<weir::sliding_window, Store> client_;
    weir::limiter<weir::sliding_window, Store> address_;
};

}  // namespace

std::unique_ptr<gate> make_gate(const settings& chosen)
{
    if (!names_postgres(chosen.database))
        return std::make_unique<gate_on<weir::memory_store>>(
            std::make_unique<weir::memory_store>(weir::memory_options{.max_keys = 100'000}),
            chosen);
    return std::make_unique<gate_on<weir::postgres::store>>(
        std::make_unique<weir::postgres::store>(
            weir::postgres::store_options{.conninfo   = chosen.database,
                                          .key_secret = chosen.secret,
                                          .deadline   = std::chrono::seconds(1)}),
        chosen);
}

}  // namespace signup
