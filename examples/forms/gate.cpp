// SPDX-License-Identifier: BSL-1.0

#include "gate.hpp"

#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/sqlite/store.hpp"
#include "weir/store/memory.hpp"

#include <chrono>
#include <concepts>
#include <memory>
#include <utility>

namespace forms {

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
    }

    [[nodiscard]] weir::instant now() const noexcept override { return counters_->now(); }

    weir::decision source(const weir::client& who, weir::instant at) noexcept override
    {
        return source_.admit(who, at);
    }
    weir::decision endpoint(std::string_view id, weir::instant at) noexcept override
    {
        return endpoint_.admit(id, at);
    }
    [[nodiscard]] bool may_wait() const noexcept override
    {
        return !std::same_as<Store, weir::memory_store>;
    }

private:
    std::unique_ptr<Store>                   counters_;
    weir::limiter<weir::fixed_window, Store> source_;
    weir::limiter<weir::fixed_window, Store> endpoint_;
};

}  // namespace

std::unique_ptr<gate> make_gate(const settings& chosen)
{
    if (!chosen.counters_in_database)
        return std::make_unique<gate_on<weir::memory_store>>(std::make_unique<weir::memory_store>(),
                                                             chosen);
    // Asked on a thread that may wait: behind a commit of submissions, which waits for the disk.
    using weir::sqlite::store;
    return std::make_unique<gate_on<store>>(
        std::make_unique<store>(weir::sqlite::store_options{
            .path     = chosen.database,
            .secret   = chosen.ip_secret.value_or(""),
            .deadline = std::chrono::seconds(2)}),
        chosen);
}

}  // namespace forms
