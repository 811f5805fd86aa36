// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/line.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "../../reference/far_side.hpp"
#include "../../reference/keeper.hpp"
#include "catch.hpp"
#include "race/crew.hpp"
#include "weir/remote/attendant.hpp"

using namespace std::chrono_literals;
using weir::remote::attendant;
using weir::remote::line;
using weir::remote::seat;
using word = reference::far_side::word;

namespace {

using clock = line::clock;

constexpr std::size_t  callers   = 8;
constexpr std::int64_t unlimited = std::int64_t{1} << 40;

const weir::remote::manner asks{.statement = "ask", .policy = "policy"};

weir::remote::row row(std::uint64_t who, std::int64_t most = unlimited)
{
    return {.manner = &asks, .who = {who, who}, .most = most, .cost = 1};
}

bool granted(const seat& one) { return one.answered && one.place < one.said.granted; }

/// What became of the asks of a test.
struct tally {
    std::atomic<std::int64_t> granted = 0, answered = 0, unanswered = 0, late = 0;

    void add(const seat& one)
    {
        granted += ::granted(one);
        ++(one.answered ? answered : unanswered);
    }
};

/// Waits for an answer, on this thread, and notes whether the line kept its word about the time.
void ask(line& one, tally& sums, const weir::remote::row& asked, clock::duration patience = 60s)
{
    seat own;
    own.asked = asked;
    own.until = clock::now() + patience;
    one.ask(own);
    sums.late += clock::now() > own.until + 5s;
    sums.add(own);
}

/// An ask that frees itself once it is told.
struct callback : seat {
    callback(tally& to, const weir::remote::row& question, clock::duration patience) : sums(&to)
    {
        asked    = question;
        until    = clock::now() + patience;
        complete = [](seat& told) noexcept {
            const std::unique_ptr<callback> own(static_cast<callback*>(&told));
            own->sums->add(told);
        };
    }
    tally* sums;
};

void post(line& one, tally& sums, const weir::remote::row& asked, clock::duration patience = 60s)
{
    auto own = std::make_unique<callback>(sums, asked, patience);
    if (one.post(*own)) (void)own.release();
    else sums.add(*own);
}

/// Brings a connection whenever one is gone, on a thread of its own as a store does.
class mender {
public:
    mender(line& one, reference::far_side& far) : line_(&one), far_(&far)
    {
        thread_ = std::thread([this] {
            while (!done_) {
                if (!line_->connected()) line_->mend(far_->connect());
                std::this_thread::yield();
            }
        });
    }
    ~mender()
    {
        done_ = true;
        thread_.join();
    }

private:
    line*                line_;
    reference::far_side* far_;
    std::atomic<bool>    done_ = false;
    std::thread          thread_;
};

}  // namespace

TEST_CASE("many who ask on one line are each answered once, and all are counted", "[line]")
{
    reference::far_side far;
    reference::keeper   keeper;
    line                one({.deadline = 60s}, keeper);
    one.mend(far.connect());
    tally      sums;
    const auto rounds = race::many(2'000);
    race::all_at_once(
        callers, rounds,
        [&](std::size_t thread, std::size_t round) {
            ask(one, sums, row(round % 3));
            if (round % 5 == thread % 5) ask(one, sums, row(thread));
        },
        [](std::size_t) {});
    CHECK(sums.unanswered == 0);
    CHECK(sums.granted == sums.answered);
    std::int64_t counted = 0;
    for (std::uint64_t who = 0; who < callers; ++who) counted += far.counted({who, who});
    CHECK(counted == sums.granted);
    CHECK(keeper.losses == 0);
}

TEST_CASE("of callers merged as they come exactly the limit is granted", "[line]")
{
    reference::far_side far;
    reference::keeper   keeper;
    line                one({.deadline = 60s}, keeper);
    one.mend(far.connect());
    std::atomic<int> wrong = 0;
    auto             sums  = std::make_unique<tally>();
    race::all_at_once(
        callers, race::many(1'000),
        [&](std::size_t, std::size_t round) {
            for (int n = 0; n < 2; ++n) ask(one, *sums, row(round, 11));
        },
        [&](std::size_t) {
            wrong += sums->granted != 11 || sums->unanswered != 0;
            sums = std::make_unique<tally>();
        });
    CHECK(wrong == 0);
}

TEST_CASE("callers go at their deadlines, and who drove hands over to those who stay", "[line]")
{
    reference::far_side far;
    reference::keeper   keeper;
    line                one({.deadline = 60s}, keeper);
    one.mend(far.connect());
    tally patient, hasty;
    race::all_at_once(
        callers, race::many(2'000),
        [&](std::size_t thread, std::size_t round) {
            if ((thread + round) % 2 == 0)
                ask(one, hasty, row(1), std::chrono::microseconds((thread * 37 + round) % 300));
            else ask(one, patient, row(1));
        },
        [](std::size_t) {});
    CHECK(patient.unanswered == 0);
    CHECK(patient.granted == patient.answered);
    CHECK(hasty.unanswered > 0);
    CHECK(hasty.late + patient.late == 0);
    CHECK(keeper.losses == 0);
    tally last;
    ask(one, last, row(1));  // whatever is still under way is heard first
    CHECK(far.counted({1, 1}) >= hasty.granted + patient.granted + last.granted);
    CHECK(last.granted == 1);
}

TEST_CASE("a side that hangs keeps nobody longer than agreed, and a new connection goes on",
          "[line]")
{
    reference::far_side far;
    reference::keeper   keeper;
    line                one({.deadline = 20ms}, keeper);
    one.mend(far.connect());
    far.say(std::deque<word>(1, word::hang));
    tally during;
    race::all_at_once(
        callers, 1,
        [&](std::size_t thread, std::size_t) {
            ask(one, during, row(thread % 2), std::chrono::milliseconds(10 + 10 * thread));
        },
        [](std::size_t) {});
    CHECK(during.late == 0);
    CHECK(during.answered == 0);
    CHECK(!one.connected());
    CHECK(keeper.losses == 1);
    CHECK(far.wires() == 0);

    mender mends(one, far);
    tally  after;
    for (const auto until = clock::now() + 60s; after.answered == 0 && clock::now() < until;)
        ask(one, after, row(7), 1s);
    CHECK(after.granted == 1);
}

TEST_CASE("through connections that break, locks and retries every ask ends, and is counted once",
          "[line]")
{
    constexpr std::uint64_t keys = 512;  // one that was locked is left alone for a while
    reference::far_side     far;
    reference::keeper       keeper;
    line                    one({.deadline = 60s}, keeper);
    one.mend(far.connect());
    const mender     mends(one, far);
    std::minstd_rand random(20'260'715);
    std::deque<word> words;
    for (int n = 0; n < 20'000; ++n) {
        const auto dice = random() % 100;
        words.push_back(dice < 2    ? word::leave
                        : dice < 5  ? word::again
                        : dice < 8  ? word::lock
                        : dice < 9  ? word::refuse
                        : dice < 11 ? word::undo
                                    : word::answer);
    }
    far.say(words);
    tally sums;
    race::all_at_once(
        callers, race::many(1'000),
        [&](std::size_t thread, std::size_t round) {
            ask(one, sums, row((thread + round) % keys),
                (round + thread) % 7 == 0 ? 200us : 60'000'000us);
        },
        [](std::size_t) {});
    CHECK(sums.late == 0);
    CHECK(sums.answered > sums.unanswered);
    std::int64_t counted = 0;
    for (std::uint64_t who = 0; who < keys; ++who) counted += far.counted({who, who});
    CHECK(sums.granted == sums.answered);
    CHECK(counted >= sums.granted);
    CHECK(counted <= sums.granted + sums.unanswered);
}

TEST_CASE("callbacks and callers who wait share a line, and each is told once", "[line]")
{
    reference::far_side far;
    reference::keeper   keeper;
    line                one({.deadline = 60s, .waiting = 1'000'000}, keeper);
    one.mend(far.connect());
    std::unique_ptr<attendant> serves;
    tally                      waited, told;
    const auto                 rounds = race::many(2'000);
    race::all_at_once(
        callers, rounds,
        [&](std::size_t thread, std::size_t round) {
            if (thread == 0 && round == rounds / 10) {  // while others drive
                serves           = std::make_unique<attendant>(std::vector<line*>{&one});
                keeper.attendant = serves.get();
            }
            if (thread % 2 == 1 || round <= rounds / 10) ask(one, waited, row(thread % 3));
            else post(one, told, row(thread % 3));
        },
        [](std::size_t) {});
    const auto posted = static_cast<std::int64_t>((callers / 2) * (rounds - rounds / 10 - 1));
    while (told.answered + told.unanswered < posted) std::this_thread::yield();
    CHECK(waited.unanswered + told.unanswered == 0);
    CHECK(told.granted == posted);
    std::int64_t counted = 0;
    for (std::uint64_t who = 0; who < 3; ++who) counted += far.counted({who, who});
    CHECK(counted == waited.granted + told.granted);

    far.hold();
    for (int n = 0; n < 10; ++n) post(one, told, row(1));
    keeper.attendant = nullptr;
    serves.reset();
    one.close();
    CHECK(told.answered + told.unanswered == posted + 10);
    far.hold(false);
}

TEST_CASE("late callbacks are told at their deadline while callers who wait go on", "[line]")
{
    reference::far_side far;
    reference::keeper   keeper;
    line                one({.deadline = 60s, .waiting = 1'000'000}, keeper);
    one.mend(far.connect());
    auto serves      = std::make_unique<attendant>(std::vector<line*>{&one});
    keeper.attendant = serves.get();
    tally      waited, told;
    const auto rounds = race::many(1'000);
    race::all_at_once(
        callers, rounds,
        [&](std::size_t thread, std::size_t round) {
            if (thread % 2 == 1) ask(one, waited, row(1));
            else post(one, told, row(1), std::chrono::microseconds((thread * 37 + round) % 300));
        },
        [](std::size_t) {});
    const auto posted = static_cast<std::int64_t>(callers / 2 * rounds);
    for (const auto until = clock::now() + 60s;
         told.answered + told.unanswered < posted && clock::now() < until;)
        std::this_thread::yield();
    CHECK(told.answered + told.unanswered == posted);
    CHECK(waited.unanswered == 0);
    keeper.attendant = nullptr;
    serves.reset();
    one.close();
    CHECK(told.answered + told.unanswered == posted);
}
