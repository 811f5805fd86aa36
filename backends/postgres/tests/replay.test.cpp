// SPDX-License-Identifier: BSL-1.0

// PostgreSQL is asked, and then memory and a file are asked the same at the instant that it says it
// was asked at: all must tell the same (G16).

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "weir/store/memory.hpp"

#include "../../../tests/reference/random.hpp"
#include "catch.hpp"
#include "stores.hpp"

#if __has_include("weir/sqlite/store.hpp")
#define WEIR_REPLAY_ON_A_FILE 1
#include "weir/sqlite/store.hpp"
#endif

using namespace std::chrono_literals;
using weir::verb;

namespace {

/// One limiter on all stores, and eight keys of it.
template <weir::policy Policy, class... Others>
class chorus {
public:
    struct part {
        weir::ask<Policy>   question = {};
        std::string         who      = {};
        weir::reply<Policy> said     = {};
    };

    chorus(weir::postgres::store& first, const std::string& name, const Policy& limit,
           Others&... others)
        : first_(first), limit_(limit),
          enrolment_(first.enrol(name, limit)), others_{{others, others.enrol(name, limit)}...}
    {
    }

    /// Asks of different keys, under way at once. False if the stores differ in anything that a
    /// caller is told.
    bool agree(reference::generator& random, std::size_t asks)
    {
        std::vector<part> parts(asks);
        for (std::size_t n = 0; n < asks; ++n) {
            parts[n].question     = next(random);
            parts[n].who          = std::to_string((random() % 2) * 8 + n);
            parts[n].question.who = first_.digest(enrolment_, parts[n].who);
        }
        if (asks == 1) parts[0].said = first_.answer(enrolment_, parts[0].question);
        else ask_at_once(parts);
        return std::ranges::all_of(parts, [&](const auto& one) {
            return std::apply([&](auto&... other) { return (alike(one, other) && ...); }, others_);
        });
    }

private:
    template <class Store>
    struct voice {
        Store&                                     store;
        typename Store::template enrolment<Policy> enrolment;
    };

    void ask_at_once(std::vector<part>& parts)
    {
        scratch::countdown left(parts.size());
        for (auto& one : parts)
            first_.answer_then(enrolment_, one.question, [&](const weir::reply<Policy>& said) {
                one.said = said;
                left.one_less();
            });
        left.wait();
    }

    template <class Store>
    bool alike(const part& one, voice<Store>& other)
    {
        auto question  = one.question;
        question.who   = other.store.digest(other.enrolment, one.who);
        const auto due = other.store.answer(other.enrolment, question, one.said.asked);
        return one.said.granted == due.granted && one.said.basis == due.basis &&
               one.said.at == due.at && told_alike(question, one.said, due);
    }

    bool told_alike(weir::ask<Policy> question, const weir::reply<Policy>& said,
                    const weir::reply<Policy>& due)
    {
        const bool spends = question.verb == verb::spend;
        if (!spends) question.verb = verb::peek, question.times = 1;
        weir::merged_callers ours(question, said, {}, said.asked);
        weir::merged_callers theirs(question, due, {}, said.asked);
        bool                 alike = true;
        for (auto callers = question.times; callers > 0; --callers) {
            const auto made = spends ? ours.next() : weir::told(question, said, {}, said.asked);
            alike &= made == (spends ? theirs.next() : weir::told(question, due, {}, said.asked));
            if (made && spends) last_lapse_ = limit_.lapses(made);
        }
        return alike;
    }

    weir::ask<Policy> next(reference::generator& random)
    {
        weir::ask<Policy> question{.limit = limit_};
        if (reference::chance(random, 5)) {  // set_limit
            question.limit.limit = limit_.limit + random() % 3;
            if constexpr (requires { question.limit.burst; })
                question.limit = {
                    .limit = question.limit.limit, .window = limit_.window, .burst = limit_.burst};
        }
        question.cost   = reference::chance(random, 50) ? 1 : random() % (limit_.limit + 3);
        question.times  = reference::chance(random, 70) ? 1 : 1 + random() % 6;
        const auto dice = random() % 100;
        if (dice < 8) question.verb = verb::peek;
        else if (dice < 13) question.verb = verb::charge;
        else if (dice < 28) question.verb = verb::give_back, question.lapses = last_lapse_;
        else if (dice < 30) question.verb = verb::forget;
        return question;
    }

    weir::postgres::store&                   first_;
    Policy                                   limit_;
    weir::postgres::store::enrolment<Policy> enrolment_;
    std::tuple<voice<Others>...>             others_;
    weir::instant                            last_lapse_ = weir::instant::max();
};

/// All turn while the test runs, but the last.
template <weir::policy Policy>
std::vector<Policy> limits()
{
    return {{.limit = 0, .window = 20ms},   {.limit = 3, .window = 2ms},
            {.limit = 5, .window = 20ms},   {.limit = 7, .window = 333ms},
            {.limit = 1, .window = 1s},     {.limit = 12, .window = 2s},
            {.limit = 100, .window = 1min}, {.limit = 1'000'003, .window = 1h}};
}

template <weir::policy Policy>
void replay(std::uint64_t asks)
{
    const scratch::schema home("replay");
    auto                  options = scratch::without_memory(scratch::in(home.name()));
    options.keep                  = {};  // rows go while they are asked for
    weir::postgres::store first(options);
    weir::memory_store    memory({.max_keys = 10'000, .seed = weir::hash_seed{1, 2}});

    const auto listen = [&]<class... Others>(Others&... others) {
        std::vector<chorus<Policy, Others...>> choirs;
        for (const auto& limit : limits<Policy>())
            choirs.emplace_back(first, std::to_string(choirs.size()), limit, others...);
        reference::generator random(20'261'129);
        for (std::uint64_t done = 0; done < reference::steps(asks);) {
            const auto at_once =
                static_cast<std::size_t>(reference::chance(random, 40) ? 1 : 2 + random() % 7);
            auto& choir = choirs[random() % choirs.size()];
            INFO("after " << done << " asks");
            REQUIRE(choir.agree(random, at_once));
            done += at_once;
        }
    };

#if defined(WEIR_REPLAY_ON_A_FILE)
    const auto path = std::filesystem::temp_directory_path() /
                      ("weir-replay-" + std::to_string(getpid()) + ".db");
    struct tidy {
        std::filesystem::path path;
        ~tidy()
        {
            for (const auto* const end : {"", "-wal", "-shm"})
                std::filesystem::remove(path.string() + end);
        }
    } const tidied{path};
    weir::sqlite::store file(
        {.path = path, .secret = scratch::secret, .deadline = 20s, .patience = 60s});
    listen(memory, file);
#else
    listen(memory);
#endif
}

}  // namespace

TEST_CASE(
    "7000 random asks of fixed_window are told by PostgreSQL what memory and a file tell (G16)",
    "[postgres][property]")
{
    replay<weir::fixed_window>(7'000);
}

TEST_CASE(
    "7000 random asks of sliding_window are told by PostgreSQL what memory and a file tell (G16)",
    "[postgres][property]")
{
    replay<weir::sliding_window>(7'000);
}

TEST_CASE("7000 random asks of gcra are told by PostgreSQL what memory and a file tell (G16)",
          "[postgres][property]")
{
    replay<weir::gcra>(7'000);
}
