// SPDX-License-Identifier: BSL-1.0

#include "weir/http/counters.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "weir/invalid.hpp"
#include "weir/store/memory.hpp"
#include "weir/store/sketch.hpp"

namespace weir::http {

namespace {

/// Parts joined so that no two lists make one text.
std::string identity(std::initializer_list<std::string_view> parts)
{
    std::string all;
    for (const auto part : parts) all.append(std::to_string(part.size())).append(":").append(part);
    return all;
}

/// gcra and strict are one arithmetic over one state.
std::string_view arithmetic(limit_policy kind)
{
    return name(kind == limit_policy::strict ? limit_policy::gcra : kind);
}

std::string names_of(const auto& registered)
{
    std::string all = "memory, sketch";
    for (const auto& [name, unused] : registered) all.append(", ").append(name);
    return all;
}

}  // namespace

counters::counters(counters_options options) : options_(options)
{
    if (options.max_keys == 0)
        weir::detail::invalid("counters: max_keys is 0; at least 1 is allowed");
    if (options.max_inflight == 0)
        weir::detail::invalid("counters: max_inflight is 0; at least 1 is allowed");
    if (const auto wrong = options.sketch.complaint(); !wrong.empty()) weir::detail::invalid(wrong);
}

void counters::add_maker(std::string name, maker make)
{
    if (name == "memory" || name == "sketch")
        weir::detail::invalid("counters: a store cannot be registered as \"" + name +
                              "\", which is there already");
    const std::lock_guard turn(mutex_);
    if (!registered_.try_emplace(name, std::move(make)).second)
        weir::detail::invalid("counters: there is a store \"" + name + "\" already");
}

/// What is gone is forgotten here, so that the map is no longer than what stands.
template <class Kept, class Make>
std::shared_ptr<Kept> counters::find_or_make(std::string identity, Make&& make)
{
    const std::lock_guard turn(mutex_);
    std::erase_if(kept_, [](const auto& one) { return one.second.expired(); });
    auto& place = kept_[std::move(identity)];
    return make(std::static_pointer_cast<Kept>(place.lock()), place);
}

std::unique_ptr<any_limiter> counters::limiter(const rate_plan& plan, std::string_view store)
{
    const auto window = std::to_string(plan.window.count());
    const auto who    = identity({store, plan.name, arithmetic(plan.policy), window});
    const auto on     = [&]<class Store>(const auto& options) {
        auto  kept   = find_or_make<Store>(who, [&](std::shared_ptr<Store> found, auto& place) {
            if (!found) place = found = std::make_shared<Store>(options);
            return found;
        });
        auto& counts = *kept;
        return make_limiter(plan, counts, std::move(kept));
    };
    // Made again by each reload, and by each override: that is no limiter per request.
    if (store == "memory")
        return on.template operator()<memory_store>(
            memory_options{.max_keys = options_.max_keys, .warn = nullptr});
    if (store == "sketch")
        return on.template operator()<sketch_store>(
            sketch_options{.size = options_.sketch, .warn = nullptr});

    std::unique_lock turn(mutex_);
    const auto       found = registered_.find(store);
    if (found == registered_.end())
        weir::detail::invalid("limit \"" + plan.name + "\": there is no store \"" +
                              std::string(store) + "\"; there are " + names_of(registered_));
    const auto make = found->second;
    turn.unlock();
    return make(plan);
}

std::shared_ptr<inflight> counters::places(std::string_view name, std::uint32_t max,
                                           std::uint32_t room)
{
    const auto total = std::max(max, room);
    return find_or_make<inflight>(
        identity({"inflight", name}), [&](std::shared_ptr<inflight> found, auto& place) {
            if (!found || found->limits().in_total < total)
                place = found = std::make_shared<inflight>(
                    name, inflight_options{.per_key = max, .in_total = total});
            return found;
        });
}

std::size_t counters::size() const
{
    const std::lock_guard turn(mutex_);
    return kept_.size();
}

}  // namespace weir::http
