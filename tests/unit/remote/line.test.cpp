// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/line.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "../../reference/far_side.hpp"
#include "../../reference/keeper.hpp"
#include "catch.hpp"

using namespace std::chrono_literals;
using weir::remote::line;
using weir::remote::line_options;
using weir::remote::seat;
using weir::remote::trip;
using word = reference::far_side::word;

namespace {

using clock = line::clock;

const weir::remote::manner asks{.statement = "ask", .policy = "policy"};
const weir::remote::manner looks{.statement = "look"};

weir::remote::row row(std::uint64_t who, std::int64_t most = 10, std::int64_t cost = 1)
{
    return {.manner = &asks, .who = {who, who}, .most = most, .cost = cost};
}

/// A line with its far side, and seats that are told by callback.
struct scene {
    explicit scene(line_options options = {.deadline = 20s}, bool connects = true)
        : one(options, keeper)
    {
        if (connects) one.mend(far.connect());
    }
    ~scene() { far.hold(false); }

    seat& post(const weir::remote::row& asked, clock::duration patience = 20s)
    {
        auto& made    = seats.emplace_back();
        made.asked    = asked;
        made.until    = clock::now() + patience;
        made.complete = [](seat& told) noexcept { ++told.said.after[2]; };
        if (!one.post(made)) made.at = seat::stage::apart, ++turned_away;
        return made;
    }

    /// Serves until the seat is done; false if nothing is left to wait for.
    bool serve_until_done(const seat& which)
    {
        while (which.at != seat::stage::done) {
            const auto next = one.serve();
            if (which.at == seat::stage::done) break;
            if (next.descriptor < 0 && next.until == clock::time_point::max()) return false;
            wait(next);
        }
        return true;
    }

    static void wait(const line::attention& next)
    {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(next.until - clock::now()).count();
        pollfd ready{.fd      = next.descriptor,
                     .events  = static_cast<short>(POLLIN | (next.writes ? POLLOUT : 0)),
                     .revents = 0};
        ::poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    }

    /// What one caller is answered who waits here.
    bool ask(const weir::remote::row& asked, clock::duration patience = 20s)
    {
        seat own;
        own.asked = asked;
        own.until = clock::now() + patience;
        one.ask(own);
        return own.answered;
    }

    reference::far_side far;
    reference::keeper   keeper;
    line                one;
    std::deque<seat>    seats;
    int                 turned_away = 0;
};

}  // namespace

TEST_CASE("who asks is answered, and drives the connection alone", "[line]")
{
    scene now;
    seat  own;
    own.asked = row(1);
    own.until = clock::now() + 20s;
    now.one.ask(own);
    CHECK(own.answered);
    CHECK(own.said.granted == 1);
    CHECK(own.said.after[0] == 1);
    CHECK(now.keeper.pokes == 0);
    CHECK(now.far.trips().size() == 1);
}

TEST_CASE("who comes while a trip is under way shares the next one", "[line]")
{
    scene now;
    now.one.be_served();
    now.far.hold();
    auto& first = now.post(row(1));
    now.one.serve();
    now.far.await(1);
    for (int n = 0; n < 14; ++n) now.post(row(1));
    auto& other = now.post(row(2));
    now.one.serve();
    CHECK(now.far.trips().size() == 1);
    now.far.hold(false);
    REQUIRE(now.serve_until_done(other));

    const auto trips = now.far.trips();
    REQUIRE(trips.size() == 2);
    CHECK(trips[1].rows == 2);
    CHECK(trips[1].callers == 15);
    CHECK(first.said.granted == 1);
    int granted = 0;
    for (const auto& one : now.seats) {
        CHECK(one.answered);
        CHECK(one.said.after[2] == 1);  // told once
        granted += one.asked.who == row(1).who && one.place < one.said.granted;
    }
    CHECK(granted == 10);
    CHECK(now.far.counted({1, 1}) == 10);
}

TEST_CASE("asks in two manners are two trips, each as they came", "[line]")
{
    scene now;
    now.one.be_served();
    auto look   = row(1);
    look.manner = &looks;
    now.post(row(2));
    now.post(look);
    auto& last = now.post(row(3));
    REQUIRE(now.serve_until_done(last));
    REQUIRE(now.serve_until_done(now.seats[1]));
    const auto trips = now.far.trips();
    REQUIRE(trips.size() == 2);
    CHECK(trips[0].rows == 2);
    CHECK(trips[1].rows == 1);
}

TEST_CASE("a caller goes at its deadline, and its late answer is told to nobody", "[line]")
{
    scene now;
    now.far.hold();
    const auto begun = clock::now();
    CHECK(!now.ask(row(1), 30ms));
    const auto took = clock::now() - begun;
    CHECK(took >= 30ms);
    CHECK(took < 5s);
    CHECK(now.one.connected());
    CHECK(now.keeper.losses == 0);

    now.far.hold(false);
    seat next;
    next.asked = row(2);
    next.until = clock::now() + 20s;
    now.one.ask(next);
    CHECK(next.answered);
    CHECK(next.said.after[0] == 1);       // of its own key
    CHECK(now.far.counted({1, 1}) == 1);  // what was sent may be counted
    CHECK(now.far.trips().size() == 2);
}

TEST_CASE("a caller that goes before its ask was sent is not counted", "[line]")
{
    scene now;
    now.one.be_served();
    now.far.hold();
    auto& sent = now.post(row(1));
    now.one.serve();
    now.far.await(1);
    CHECK(!now.ask(row(2), 1ms));
    now.far.hold(false);
    REQUIRE(now.serve_until_done(sent));
    CHECK(now.serve_until_done(now.post(row(3))));
    CHECK(now.far.counted({2, 2}) == 0);
    CHECK(now.far.counted({3, 3}) == 1);
}

TEST_CASE("a callback is called at its deadline at the latest, and not sooner", "[line]")
{
    scene now;
    now.one.be_served();
    now.far.hold();
    const auto begun = clock::now();
    auto&      soon  = now.post(row(1), 30ms);
    auto&      late  = now.post(row(2), 60ms);
    CHECK(now.one.serve().until == soon.until);
    REQUIRE(now.serve_until_done(soon));
    CHECK(clock::now() - begun >= 30ms);
    CHECK(!soon.answered);
    REQUIRE(now.serve_until_done(late));
    CHECK(clock::now() - begun >= 60ms);
    CHECK(soon.said.after[2] == 1);
    CHECK(late.said.after[2] == 1);
}

TEST_CASE("a trip that is not answered in time costs the connection, and a new one goes on",
          "[line]")
{
    scene now({.deadline = 30ms});
    now.far.say({word::hang});
    const auto begun = clock::now();
    CHECK(!now.ask(row(1)));
    CHECK(clock::now() - begun >= 30ms);
    CHECK(clock::now() - begun < 5s);
    CHECK(!now.one.connected());
    CHECK(now.keeper.losses == 1);
    CHECK(now.far.wires() == 0);

    CHECK(!now.ask(row(1), 1ms));  // nobody connects while a caller waits
    CHECK(now.keeper.losses == 1);
    bool answered = false;
    for (int tries = 0; tries < 4 && !answered; ++tries) {  // a busy machine may be late again
        if (!now.one.connected()) now.one.mend(now.far.connect());
        answered = now.ask(row(1));
    }
    CHECK(answered);
}

TEST_CASE("who waits without a connection is answered once there is one", "[line]")
{
    scene       now({.deadline = 20s}, false);
    bool        answered = false;
    std::thread caller([&] { answered = now.ask(row(1)); });
    now.one.mend(now.far.connect());
    caller.join();
    CHECK(answered);

    scene served({.deadline = 20s}, false);
    served.one.be_served();
    auto& one = served.post(row(1));
    CHECK(served.one.serve().descriptor == -1);
    served.one.mend(served.far.connect());
    CHECK(served.keeper.pokes >= 2);
    REQUIRE(served.serve_until_done(one));
    CHECK(one.answered);
}

TEST_CASE("what was sent is not sent again over the next connection", "[line]")
{
    scene now;
    now.keeper.mends = &now.one;
    now.keeper.from  = &now.far;
    now.far.say({word::leave});
    CHECK(!now.ask(row(1)));
    CHECK(now.one.connected());
    CHECK(now.far.counted({1, 1}) == 0);
    CHECK(now.ask(row(1)));
    CHECK(now.far.counted({1, 1}) == 1);
}

TEST_CASE("what was surely not run is asked again over the next connection, once it is there",
          "[line]")
{
    scene now;
    now.keeper.mends = &now.one;
    now.keeper.from  = &now.far;
    now.far.say({word::undo, word::undo});
    CHECK(now.ask(row(1)));
    CHECK(now.far.counted({1, 1}) == 1);
    CHECK(now.far.trips().size() == 3);
    CHECK(now.keeper.losses == 2);
    CHECK(now.keeper.aways == 0);

    std::array<seat, 2> slots;
    std::vector<seat*>  set{&slots[0], &slots[1]};
    slots[0].asked = row(2), slots[1].asked = row(3);
    seat head;
    head.set   = set;
    head.until = clock::now() + 20s;
    now.far.say({word::undo});
    now.one.ask(head);
    CHECK(head.answered);
    CHECK(slots[1].said.after[0] == 1);

    scene served;
    served.one.be_served();
    for (int n = 0; n < 3; ++n) served.post(row(1));
    auto& brief = served.post(row(2), 30ms);
    served.far.say({word::undo});
    REQUIRE(served.serve_until_done(brief));
    CHECK(!brief.answered);  // nobody brought a connection
    served.one.mend(served.far.connect());
    REQUIRE(served.serve_until_done(served.seats[0]));
    for (int n = 0; n < 3; ++n) CHECK(served.seats[static_cast<std::size_t>(n)].answered);
    CHECK(served.far.counted({1, 1}) == 3);
}

TEST_CASE("what the store undid is asked once more, and no oftener", "[line]")
{
    scene now;
    now.far.say({word::again});
    CHECK(now.ask(row(1)));
    CHECK(now.far.trips().size() == 2);
    now.far.say({word::again, word::again});
    CHECK(!now.ask(row(1)));
    CHECK(now.far.trips().size() == 4);
    CHECK(now.one.connected());
    CHECK(now.ask(row(1)));
}

TEST_CASE("of a statement that gave up waiting for a lock each row is asked alone", "[line]")
{
    scene now;
    now.one.be_served();
    for (std::uint64_t n = 1; n <= 4; ++n) now.post(row(n));
    now.far.say({word::lock, word::answer, word::lock});
    for (const auto& one : now.seats) REQUIRE(now.serve_until_done(one));
    const auto trips = now.far.trips();
    REQUIRE(trips.size() == 5);
    CHECK(trips[0].rows == 4);
    int answered = 0;
    for (const auto& one : now.seats) answered += one.answered;
    for (std::size_t n = 1; n < 5; ++n) CHECK(trips[n].rows == 1);
    CHECK(answered == 3);
    CHECK(now.one.connected());

    for (std::uint64_t n = 11; n < 21; ++n) {
        now.far.say({word::lock});
        REQUIRE(now.serve_until_done(now.post(row(n))));
    }
    CHECK(now.keeper.aways == 0);  // a lock is somebody's, and no fault of the store
}

TEST_CASE("a key whose row somebody holds is left alone for a while, and no other one is", "[line]")
{
    scene now;
    now.far.say({word::lock});
    CHECK(!now.ask(row(1)));
    const auto trips = now.far.trips().size();
    for (int n = 0; n < 10; ++n) CHECK(!now.ask(row(1)));
    CHECK(now.far.trips().size() == trips);
    CHECK(now.ask(row(2)));
    auto look   = row(1);
    look.manner = &looks;
    CHECK(now.ask(look));  // waits for nobody

    const auto begun = clock::now();
    while (!now.ask(row(1)) && clock::now() - begun < 20s) {}
    CHECK(now.ask(row(1)));
    CHECK(now.far.counted({1, 1}) == 3);
}

TEST_CASE("a store that refuses again and again is left alone, and told of once", "[line]")
{
    scene now;
    now.far.say(std::deque<word>(100, word::refuse));
    for (int n = 0; n < 50; ++n) CHECK(!now.ask(row(1)));
    CHECK(now.far.trips().size() <= 8);
    CHECK(now.one.connected());
    CHECK(now.keeper.aways == 1);
    now.far.say({});
    for (const auto until = clock::now() + 20s; now.keeper.backs == 0 && clock::now() < until;)
        now.ask(row(1));
    CHECK(now.keeper.backs == 1);
    CHECK(now.keeper.aways == 1);
    CHECK(now.ask(row(1)));
}

TEST_CASE("without a connection callers who wait are soon turned away, and so are callbacks",
          "[line]")
{
    scene blocking({.deadline = 20s}, false);
    for (int n = 0; n < 5; ++n) CHECK(!blocking.ask(row(1), 1ms));
    CHECK(blocking.keeper.aways == 1);
    const auto begun = clock::now();
    CHECK(!blocking.ask(row(1), 20s));
    CHECK(clock::now() - begun < 10s);

    scene served({.deadline = 20s}, false);
    served.one.be_served();
    for (int n = 0; n < 5; ++n) REQUIRE(served.serve_until_done(served.post(row(1), 1ms)));
    CHECK(served.keeper.aways == 1);
    served.post(row(1));
    CHECK(served.turned_away == 1);
}

TEST_CASE("of more asks than may wait the last are turned away at once", "[line]")
{
    scene now({.deadline = 20s, .waiting = 3});
    now.one.be_served();
    now.far.hold();
    for (std::uint64_t n = 0; n < 5; ++n) now.post(row(n));
    CHECK(now.turned_away == 2);
    CHECK(!now.ask(row(7)));
    now.far.hold(false);
    REQUIRE(now.serve_until_done(now.seats[2]));
    CHECK(now.serve_until_done(now.post(row(7))));
    CHECK(now.turned_away == 2);
}

TEST_CASE("a set is answered as a whole, slot by slot", "[line]")
{
    scene              now;
    auto               slots = std::make_unique<std::array<seat, 3>>();
    std::vector<seat*> set;
    for (std::size_t n = 0; n < 3; ++n) {
        set.push_back(&slots->at(n));
        set[n]->asked = row(9 - n, 10, static_cast<std::int64_t>(n) + 1);
    }
    seat head;
    head.set   = set;
    head.until = clock::now() + 20s;
    now.one.ask(head);
    CHECK(head.answered);
    for (std::size_t n = 0; n < 3; ++n)
        CHECK(set[n]->said.after[0] == static_cast<std::int64_t>(n) + 1);
    const auto trips = now.far.trips();
    REQUIRE(trips.size() == 1);
    CHECK(trips[0].carries == trip::kind::set);

    now.far.hold();
    seat late;
    late.set   = set;
    late.until = clock::now() + 20ms;
    now.one.ask(late);
    CHECK(!late.answered);
    slots.reset();  // gone with their caller
    now.far.hold(false);
    CHECK(now.ask(row(1)));
}

TEST_CASE("after so many rows, or if asked to, a trip tidies up, whatever comes of it", "[line]")
{
    scene now({.deadline = 20s, .sweep_after = 3});
    for (std::uint64_t n = 0; n < 4; ++n) CHECK(now.ask(row(n)));
    const auto sweeps = [&] {
        int count = 0;
        for (const auto& one : now.far.trips()) count += one.carries == trip::kind::sweep;
        return count;
    };
    CHECK(sweeps() == 1);
    now.one.sweep_soon();
    now.far.say({word::refuse});
    CHECK(now.ask(row(1)));
    CHECK(sweeps() == 2);
    now.one.sweep_soon();
    now.far.say({word::again, word::again});
    CHECK(now.ask(row(1)));
    now.one.sweep_soon();
    now.far.say({word::lock});
    CHECK(now.ask(row(1)));
}

TEST_CASE("a line that is closed tells all callbacks that wait or were sent", "[line]")
{
    scene now;
    now.one.be_served();
    now.far.hold();
    auto& sent = now.post(row(1));
    now.one.serve();
    now.far.await(1);
    auto& waiting = now.post(row(2));
    now.one.close();
    CHECK(now.far.wires() == 0);
    for (const auto* one : {&sent, &waiting}) {
        CHECK(one->at == seat::stage::done);
        CHECK(!one->answered);
        CHECK(one->said.after[2] == 1);
    }
}

TEST_CASE("the other side's goodbye between two trips costs no ask", "[line]")
{
    scene now;
    now.keeper.mends = &now.one;
    now.keeper.from  = &now.far;
    CHECK(now.ask(row(1)));
    now.far.hang_up();
    CHECK(now.ask(row(1)));
    CHECK(now.keeper.losses == 1);
    CHECK(now.far.counted({1, 1}) == 2);
}
