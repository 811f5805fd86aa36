// SPDX-License-Identifier: BSL-1.0

#include "gate.hpp"

#include "storage/records.hpp"

#include "weir/adapt/asio.hpp"
#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/postgres/store.hpp"
#include "weir/sqlite/store.hpp"
#include "weir/store/memory.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace forms {

namespace asio = boost::asio;

namespace {

weir::fixed_window policy(const limit_settings& of)
{
    return {.limit = of.requests, .window = of.window};
}

template <class Store>
class gate_on final : public gate {
public:
    gate_on(std::unique_ptr<Store> counters, const settings& chosen)
        : counters_(std::move(counters)), source_("ip", policy(chosen.source), *counters_),
          endpoint_("endpoint", policy(chosen.endpoint), *counters_)
    {
        if constexpr (in_a_file) waiting_.emplace(most_asking);
    }

    [[nodiscard]] weir::instant now() const noexcept override
    {
        if constexpr (Store::on_callers_clock) return counters_->now();
        else return weir::now();
    }
    [[nodiscard]] bool waits() const noexcept override
    {
        return !std::same_as<Store, weir::memory_store>;
    }

    weir::decision source(const weir::client& who, weir::instant at) noexcept override
    {
        return admit(source_, who, at);
    }
    weir::decision endpoint(std::string_view id, weir::instant at) noexcept override
    {
        return admit(endpoint_, id, at);
    }
    awaitable<weir::decision> source_later(const weir::client& who, weir::instant at) override
    {
        return later(source_, source_.digest(who), at);
    }
    awaitable<weir::decision> endpoint_later(std::string_view id, weir::instant at) override
    {
        return later(endpoint_, endpoint_.digest(id), at);
    }

private:
    using limiter = weir::limiter<weir::fixed_window, Store>;

    static constexpr bool in_a_file = std::same_as<Store, weir::sqlite::store>;

    /// Asks that arrive together share a transaction of a file; so many can.
    static constexpr std::size_t most_asking = 32;

    template <class Who>
    static weir::decision admit(const limiter& limit, const Who& who, weir::instant at) noexcept
    {
        if constexpr (Store::on_callers_clock) return limit.admit(who, at);
        else return limit.admit(who);
    }

    /// A store on a server answers by callback; one in a file is asked on a thread that may wait
    /// for the disk. By key: nothing of the request is borrowed meanwhile.
    awaitable<weir::decision> later(const limiter& limit, weir::key who, weir::instant at)
    {
        if constexpr (!Store::on_callers_clock) {
            co_return co_await weir::async_admit(limit, who, asio::use_awaitable);
        } else if constexpr (in_a_file) {
            const auto ask = [&]() -> awaitable<weir::decision> {
                co_return admit(limit, who, at);
            };
            co_return co_await asio::co_spawn(*waiting_, ask, asio::use_awaitable);
        } else {
            co_return admit(limit, who, at);
        }
    }

    std::unique_ptr<Store> counters_;
    limiter                source_;
    limiter                endpoint_;

    std::optional<asio::thread_pool> waiting_;  // of a store in a file only
};

template <class Store, class Options>
std::unique_ptr<gate> gate_with(const Options& options, const settings& chosen)
{
    return std::make_unique<gate_on<Store>>(std::make_unique<Store>(options), chosen);
}

}  // namespace

std::unique_ptr<gate> make_gate(const settings& chosen)
{
    if (!chosen.counters_in_database)
        return gate_with<weir::memory_store>(weir::memory_options{}, chosen);
    if (names_postgres(chosen.database))
        return gate_with<weir::postgres::store>(
            weir::postgres::store_options{.conninfo   = chosen.database,
                                          .key_secret = chosen.ip_secret.value_or(""),
                                          .deadline   = std::chrono::milliseconds(500)},
            chosen);
    // An ask waits behind a commit of submissions, which waits for the disk.
    return gate_with<weir::sqlite::store>(
        weir::sqlite::store_options{.path     = chosen.database,
                                    .secret   = chosen.ip_secret.value_or(""),
                                    .deadline = std::chrono::seconds(2)},
        chosen);
}

}  // namespace forms
