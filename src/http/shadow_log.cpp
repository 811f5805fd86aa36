// SPDX-License-Identifier: BSL-1.0

#include "weir/http/shadow_log.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace weir::http {

namespace {

/// Adds a value that a client chose: nothing of it can end a line, move a cursor or end its quotes.
void add_escaped(std::string& line, std::string_view value, std::string_view also)
{
    constexpr std::string_view hex = "0123456789abcdef";
    for (const auto c : value.substr(0, shadow_log::longest_value)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f && also.find(c) == also.npos) line += c;
        else line.append("\\x").append(1, hex[byte >> 4U]).append(1, hex[byte & 0xfU]);
    }
    if (value.size() > shadow_log::longest_value) line += "...";
}

void add_quoted(std::string& line, std::string_view name, std::string_view value)
{
    line.append(" ").append(name).append("=\"");
    add_escaped(line, value, "\"\\");
    line += '"';
}

void add_plain(std::string& line, std::string_view name, std::string_view value,
               std::string_view also)
{
    line.append(" ").append(name).append("=");
    add_escaped(line, value, also);
}

}  // namespace

shadow_log::shadow_log(std::string name, std::string category, sink to)
    : name_(std::move(name)), category_(std::move(category)), to_(std::move(to)),
      digest_(hash_seed::of_process(), 0, name_, duration::zero())
{
}

/// Whether one more line is allowed in the second of `at`; if so, how many were skipped before it.
/// A request that is judged a little late counts to the second that has begun already.
bool shadow_log::has_line(std::string_view matched, instant at, std::uint64_t& skipped)
{
    const auto            who = digest(matched);
    const auto            now = std::chrono::floor<std::chrono::seconds>(at);
    const std::lock_guard turn(mutex_);
    ++figures_.seen;
    note(who);
    if (now.time_since_epoch().count() > second_) {
        second_ = now.time_since_epoch().count();
        lines_  = 0;
    }
    if (lines_ == lines_a_second) {
        ++figures_.skipped;
        ++untold_;
        return false;
    }
    ++lines_;
    ++figures_.logged;
    skipped = std::exchange(untold_, 0);
    return true;
}

/// The space-saving list of Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and
/// top-k elements in data streams", 2005: who is not on it takes the place of the least.
void shadow_log::note(const key& who) noexcept
{
    auto* least = most_.data();
    for (auto& one : most_) {
        if (one.times > 0 && one.who == who) {
            ++one.times;
            return;
        }
        if (one.times < least->times) least = &one;
    }
    *least = {.who = who, .times = least->times + 1, .too_far = least->times};
}

void shadow_log::would_refuse(const visit& of, const would_be_refusal& refusal, instant at)
{
    std::uint64_t skipped = 0;
    if (!has_line(refusal.matched, at, skipped) || !to_) return;

    const auto& address = of.client.address();
    std::string line    = "dry run, the request would have been refused";
    add_quoted(line, "category", category_);
    add_quoted(line, "location", of.location);
    line.append(" status=").append(std::to_string(refusal.status));
    add_plain(line, "reason", refusal.reason, "");
    add_quoted(line, "matched", refusal.matched);
    add_quoted(line, "client_ip", address ? to_string(*address) : std::string());
    add_quoted(line, "method", of.from.method());
    add_plain(line, "uri", of.from.target(), " ");
    add_quoted(line, "request_id", of.request_id);
    line.append(" skipped=").append(std::to_string(skipped));
    to_(line);
}

void shadow_log::flush()
{
    std::uint64_t skipped = 0;
    {
        const std::lock_guard turn(mutex_);
        skipped = std::exchange(untold_, 0);
    }
    if (skipped == 0 || !to_) return;
    std::string line = "dry run, more requests would have been refused";
    add_quoted(line, "category", category_);
    add_quoted(line, "name", name_);
    line.append(" skipped=").append(std::to_string(skipped));
    to_(line);
}

shadow_figures shadow_log::figures() const
{
    const std::lock_guard turn(mutex_);
    return figures_;
}

std::vector<most_refused_entry> shadow_log::most_refused() const
{
    std::vector<most_refused_entry> all;
    {
        const std::lock_guard turn(mutex_);
        all.assign(most_.begin(), most_.end());
    }
    std::erase_if(all, [](const auto& one) { return one.times == 0; });
    std::ranges::stable_sort(all, std::ranges::greater(), &most_refused_entry::times);
    return all;
}

}  // namespace weir::http
