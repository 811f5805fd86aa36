// SPDX-License-Identifier: BSL-1.0

// What a limit would have done to a traffic log:
//
//     weir-simulate sliding_window limit=100 window=1s < log
//
// reads lines `T_MS KEY [COST]` (milliseconds since 1970, who, units; a cost of 0 looks), in the
// order given, and prints for each `T_MS KEY admitted LEFT -` or `T_MS KEY refused LEFT RETRY_MS`.

#include "weir/config/duration.hpp"
#include "weir/weir.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

constexpr const char* usage =
    "usage: weir-simulate fixed_window|sliding_window limit=100 window=1s < LOG\n"
    "       weir-simulate gcra|at_most limit=100 window=1s [burst=10] < LOG\n"
    "LOG has lines T_MS KEY [COST]: milliseconds since 1970, a name, units (1 by default, 0 "
    "looks).\n"
    "Printed for each: T_MS KEY admitted LEFT -, or T_MS KEY refused LEFT RETRY_MS, where "
    "RETRY_MS\n"
    "is rounded up, and `none` where no wait helps. A window is 1h30m, 90s or 500ms.\n";

struct request {
    std::string_view time;  ///< As it was written.
    std::string_view key;
    std::uint64_t    cost = 1;
    weir::instant    at   = {};
};

std::vector<request> read_log(std::string_view text);

/// One client: a limiter on a store of its own. In a shared table a clock that steps back may find
/// that another client has taken the slot of a counter that had recovered.
template <class Policy>
struct client {
    explicit client(const Policy& limit) : limiter("simulated", limit, counters) {}

    weir::memory_store counters{{.max_keys = 1, .overflow = weir::overflow::refuse}};
    weir::limiter<Policy, weir::memory_store> limiter;
};

void print(std::string& out, const request& one, const weir::decision& made)
{
    out.append(one.time).append(" ").append(one.key);
    out.append(made ? " admitted " : " refused ").append(std::to_string(made.left)).append(" ");
    if (made) out.append("-");
    else if (!made.retry_after) out.append("none");
    else
        out.append(std::to_string(
            std::chrono::ceil<std::chrono::milliseconds>(*made.retry_after).count()));
    out.append("\n");
}

template <class Policy>
std::string simulate(const Policy& limit, const std::vector<request>& log)
{
    std::unordered_map<std::string_view, std::unique_ptr<client<Policy>>> clients;
    std::string                                                           out;
    client<Policy> checked(limit);  // wrong numbers are told even of an empty log
    for (const auto& one : log) {
        auto& who = clients[one.key];
        if (!who) who = std::make_unique<client<Policy>>(limit);
        print(out, one, who->limiter.admit(one.key, {.cost = one.cost}, one.at));
    }
    return out;
}

// ---------------------------------------------------------------------------------------------

[[noreturn]] void reject(std::string_view what, std::size_t number, std::size_t column,
                         const std::string& why)
{
    throw std::invalid_argument(std::string(what) + ' ' + std::to_string(number) + ", column " +
                                std::to_string(column) + ": " + why);
}

std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

std::optional<std::uint64_t> whole_number(std::string_view text)
{
    std::uint64_t value = 0;
    const auto    end   = text.data() + text.size();
    const auto    read  = std::from_chars(text.data(), end, value);
    if (text.empty() || read.ptr != end || read.ec != std::errc{}) return std::nullopt;
    return value;
}

/// The words of a line, which spaces and tabs part. A carriage return before its end is let pass.
std::vector<std::string_view> words(std::string_view line)
{
    constexpr auto                gaps = " \t\r";
    std::vector<std::string_view> found;
    for (auto from = line.find_first_not_of(gaps); from != line.npos;) {
        const auto to = std::min(line.find_first_of(gaps, from), line.size());
        found.push_back(line.substr(from, to - from));
        from = line.find_first_not_of(gaps, to);
    }
    return found;
}

request read_line(std::string_view line, std::size_t number)
{
    const auto said   = words(line);
    const auto column = [&](std::string_view word) {
        return static_cast<std::size_t>(word.data() - line.data()) + 1;
    };
    if (said.size() < 2) reject("line", number, line.size() + 1, "T_MS KEY [COST] is wanted");
    if (said.size() > 3)
        reject("line", number, column(said[3]),
               quoted(said[3]) + " is too much; T_MS KEY [COST] is wanted");

    constexpr std::uint64_t last = std::numeric_limits<std::int64_t>::max() / 1'000'000;
    const auto              ms   = whole_number(said[0]);
    if (!ms)
        reject("line", number, column(said[0]),
               quoted(said[0]) + " is no whole number of milliseconds from 0 to " +
                   std::to_string(last));
    if (*ms > last)
        reject("line", number, column(said[0]),
               quoted(said[0]) + " is later than an instant can be; the last is " +
                   std::to_string(last));

    request one{.time = said[0], .key = said[1]};
    one.at = weir::instant(std::chrono::milliseconds(*ms));
    if (said.size() == 3) {
        const auto cost = whole_number(said[2]);
        if (!cost)
            reject("line", number, column(said[2]),
                   quoted(said[2]) + " is no whole number of units from 0 to 2^64 - 1");
        one.cost = *cost;
    }
    return one;
}

std::vector<request> read_log(std::string_view text)
{
    std::vector<request> log;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        log.push_back(read_line(text.substr(0, end), number));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return log;
}

struct settings {
    std::string_view              policy;
    std::optional<std::uint64_t>  limit  = {};
    std::optional<std::uint64_t>  burst  = {};
    std::optional<weir::duration> window = {};
};

/// Argument `number` of the command line, which is `name=value`.
void set(settings& chosen, std::string_view argument, std::size_t number)
{
    const auto equals = std::min(argument.find('='), argument.size());
    const auto name   = argument.substr(0, equals);
    const auto value  = argument.substr(std::min(equals + 1, argument.size()));
    const auto put    = [&](auto& to, const auto& read, std::string_view wanted) {
        if (equals == argument.size())
            reject("argument", number, equals + 1, "= and a value are wanted");
        if (!read)
            reject("argument", number, equals + 2,
                      quoted(value) + " is not " + std::string(wanted));
        if (to) reject("argument", number, 1, std::string(name) + " is set twice");
        to = read;
    };
    const bool has_burst = chosen.policy == "gcra" || chosen.policy == "at_most";
    if (name == "limit") put(chosen.limit, whole_number(value), "a whole number of units");
    else if (name == "burst" && has_burst)
        put(chosen.burst, whole_number(value), "a whole number of units");
    else if (name == "window")
        put(chosen.window, weir::config::parse_duration(value), weir::config::duration_grammar);
    else
        reject("argument", number, 1,
               quoted(name) + " is no setting of " + std::string(chosen.policy) +
                   "; limit, window" + (has_burst ? " and burst are" : " are"));
}

settings read_settings(const std::vector<std::string_view>& arguments)
{
    if (arguments.empty()) throw std::invalid_argument("a policy is wanted; see --help");
    settings chosen{.policy = arguments[0]};
    if (chosen.policy != "fixed_window" && chosen.policy != "sliding_window" &&
        chosen.policy != "gcra" && chosen.policy != "at_most")
        reject("argument", 1, 1,
               quoted(chosen.policy) +
                   " is no policy; fixed_window, sliding_window, gcra and at_most are");
    for (std::size_t i = 1; i < arguments.size(); ++i) set(chosen, arguments[i], i + 1);
    if (!chosen.limit) throw std::invalid_argument("limit is wanted, as in limit=100");
    if (!chosen.window) throw std::invalid_argument("window is wanted, as in window=1s");
    return chosen;
}

std::string run(const settings& chosen, std::string_view text)
{
    const auto log    = read_log(text);
    const auto limit  = *chosen.limit;
    const auto window = *chosen.window;
    if (chosen.policy == "fixed_window")
        return simulate(weir::fixed_window{.limit = limit, .window = window}, log);
    if (chosen.policy == "sliding_window")
        return simulate(weir::sliding_window{.limit = limit, .window = window}, log);
    if (chosen.policy == "at_most")
        return simulate(weir::gcra::at_most(limit, window, {.burst = chosen.burst.value_or(1)}),
                        log);
    return simulate(
        weir::gcra{.limit = limit, .window = window, .burst = chosen.burst.value_or(limit)}, log);
}

}  // namespace

int main(int count, char** values)
{
    const std::vector<std::string_view> arguments(values + 1, values + count);
    if (arguments.size() == 1 && arguments[0] == "--help") {
        std::fputs(usage, stdout);
        return 0;
    }
    try {
        const auto        chosen = read_settings(arguments);
        const std::string text(std::istreambuf_iterator<char>(std::cin), {});
        const auto        out = run(chosen, text);
        return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() &&
                       std::fflush(stdout) == 0
                   ? 0
                   : 1;
    } catch (const std::invalid_argument& wrong) {
        std::fprintf(stderr, "weir-simulate: %s\n", wrong.what());
        return 2;
    }
}
