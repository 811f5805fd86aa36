// SPDX-License-Identifier: BSL-1.0

#include "weir/adapt/asio.hpp"

#include "catch.hpp"
#include "reference/one_client.hpp"
#include "reference/own_clock_store.hpp"

#include "weir/limiter.hpp"
#include "weir/policy/fixed_window.hpp"
#include "weir/policy/gcra.hpp"
#include "weir/store/memory.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using reference::own_clock_store;
using reference::t;
using completion = own_clock_store::completion;

namespace {

constexpr weir::fixed_window two_a_minute{.limit = 2, .window = 1min};

/// What a coroutine is told in `asks` asks in a row, and on how many other threads it woke up.
template <class Limiter>
asio::awaitable<void> ask(const Limiter& limiter, int asks, std::vector<weir::decision>& told,
                          int& strayed)
{
    const auto home = std::this_thread::get_id();
    for (int i = 0; i < asks; ++i) {
        told.push_back(
            co_await weir::async_admit(limiter, std::string("client"), asio::use_awaitable));
        strayed += std::this_thread::get_id() != home;
    }
}

template <class Store>
void a_coroutine_is_told(Store& counters)
{
    const weir::limiter         limiter("ip", two_a_minute, counters);
    asio::io_context            context;
    std::vector<weir::decision> told;
    int                         strayed = 0;
    asio::co_spawn(context, ask(limiter, 3, told, strayed), asio::detached);
    context.run();
    REQUIRE(told.size() == 3);
    CHECK(told[0].left == 1);
    CHECK(told[1]);
    CHECK(!told[2]);
    CHECK(told[2].limiter == "ip");
    CHECK(strayed == 0);
}

template <class Store>
void no_handler_runs_inside(Store& counters)
{
    const weir::limiter           limiter("ip", two_a_minute, counters);
    asio::io_context              context;
    std::optional<weir::decision> told;
    weir::async_admit(limiter, "client",
                      asio::bind_executor(context, [&](weir::decision made) { told = made; }));
    CHECK(!told);
    context.run();
    REQUIRE(told);
    CHECK(told->left == 1);
}

}  // namespace

TEST_CASE("a coroutine is told decisions in turn, on its own thread, whoever had them", "[asio]")
{
    weir::memory_store in_process;
    own_clock_store    at_once(t(0)), by_others(t(0), completion::on_a_thread);
    a_coroutine_is_told(in_process);
    a_coroutine_is_told(at_once);
    a_coroutine_is_told(by_others);
}

TEST_CASE("a callback never runs inside async_admit, even if the decision is there at once",
          "[asio]")
{
    weir::memory_store in_process;
    own_clock_store    at_once(t(0));
    no_handler_runs_inside(in_process);
    no_handler_runs_inside(at_once);
}

TEST_CASE("what can never fit is posted like any other decision", "[asio]")
{
    own_clock_store               counters(t(0));
    const weir::limiter           limiter("ip", two_a_minute, counters);
    asio::io_context              context;
    std::optional<weir::decision> told;
    weir::async_admit(limiter, "client", weir::spending{.cost = 3},
                      asio::bind_executor(context, [&](weir::decision made) { told = made; }));
    CHECK(!told);
    context.run();
    REQUIRE(told);
    CHECK(!*told);
    CHECK(counters.asked() == 0);
}

TEST_CASE("a future has the decision", "[asio]")
{
    own_clock_store     counters(t(0), completion::on_a_thread);
    const weir::limiter limiter("ip", weir::gcra{.limit = 5, .window = 1min}, counters);
    auto told = weir::async_admit(limiter, "client", weir::spending{.cost = 4}, asio::use_future);
    const weir::decision made = told.get();
    CHECK(made);
    CHECK(made.cost == 4);
    CHECK(made.left == 1);
}

TEST_CASE("a callback without an executor runs on another thread", "[asio]")
{
    weir::memory_store            counters;
    const weir::limiter           limiter("ip", two_a_minute, counters);
    std::promise<std::thread::id> where;
    weir::async_admit(limiter, "client",
                      [&](weir::decision) { where.set_value(std::this_thread::get_id()); });
    CHECK(where.get_future().get() != std::this_thread::get_id());
}

TEST_CASE("a handler runs on its strand, and may be move-only", "[asio]")
{
    own_clock_store     counters(t(0), completion::on_a_thread);
    const weir::limiter limiter("ip", two_a_minute, counters);
    asio::io_context    context;
    const auto          strand = asio::make_strand(context);
    bool                there  = false;
    weir::async_admit(limiter, "client",
                      asio::bind_executor(strand, [&, left = std::make_unique<std::uint64_t>(1)](
                                                      weir::decision made) {
                          there = strand.running_in_this_thread() && made.left == *left;
                      }));
    context.run();
    CHECK(there);
}

TEST_CASE("an ask under way keeps the executor of its handler at work, and no longer", "[asio]")
{
    own_clock_store counters(t(0), completion::on_a_thread);
    counters.hold();
    const weir::limiter limiter("ip", two_a_minute, counters);
    asio::io_context    context;
    bool                called = false;
    weir::async_admit(limiter, "client",
                      asio::bind_executor(context, [&](weir::decision) { called = true; }));
    CHECK(context.poll() == 0);
    CHECK(!context.stopped());
    counters.finish();
    CHECK(!called);
    CHECK(context.poll() == 1);
    CHECK(called);
    CHECK(context.stopped());
}

TEST_CASE("the subject is digested by the call: its bytes may be gone when the ask begins",
          "[asio]")
{
    own_clock_store     counters(t(0), completion::on_a_thread);
    const weir::limiter limiter("ip", two_a_minute, counters);
    std::string         name  = "somebody with a long name";
    auto                later = weir::async_admit(limiter, std::string_view(name), asio::deferred);
    name.assign(name.size(), 'x');
    CHECK(counters.asked() == 0);
    CHECK(std::move(later)(asio::use_future).get());
    CHECK(limiter.peek("somebody with a long name").left == 1);
    CHECK(limiter.peek(name).left == 2);

    asio::io_context context;
    const auto       awaits = [&]() -> asio::awaitable<void> {
        auto under_way = weir::async_admit(limiter, std::string("somebody with a long name"),
                                                 asio::use_awaitable);
        const auto made = co_await std::move(under_way);
        CHECK(made);
    };
    asio::co_spawn(context, awaits(), asio::detached);
    context.run();
    CHECK(limiter.peek("somebody with a long name").left == 0);
}

TEST_CASE("a cancelled wait ends with the decision all the same", "[asio]")
{
    own_clock_store counters(t(0), completion::on_a_thread);
    counters.hold();
    const weir::limiter       limiter("ip", two_a_minute, counters);
    asio::io_context          context;
    asio::cancellation_signal stop;
    int                       told = 0;
    weir::async_admit(limiter, "client",
                      asio::bind_cancellation_slot(
                          stop.slot(), asio::bind_executor(context, [&](weir::decision made) {
                              told += bool(made);
                          })));
    stop.emit(asio::cancellation_type::all);
    counters.release();
    context.run();
    CHECK(told == 1);
    CHECK(limiter.peek("client").left == 1);
}
