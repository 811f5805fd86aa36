// SPDX-License-Identifier: BSL-1.0

#include "cache.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <utility>

namespace proxy {

namespace {

using std::chrono::seconds;

struct cache_control {
    bool                        no_store = false, no_cache = false, is_private = false;
    std::optional<std::int64_t> max_age, shared_max_age;
};

std::optional<std::int64_t> seconds_in(std::string_view word) noexcept
{
    auto text = word.substr(word.find('=') + 1);
    if (text.size() > 1 && text.front() == '"' && text.back() == '"')
        text = text.substr(1, text.size() - 2);
    std::int64_t number      = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc{} || end != text.data() + text.size() || number < 0)
        return 0;  // what cannot be read is stale (RFC 9111 section 4.2.1)
    return std::min<std::int64_t>(number, 31'536'000);
}

cache_control read_cache_control(const message_head& from) noexcept
{
    cache_control made;
    for (std::size_t i = 0; i < from.lines.size(); ++i) {
        if (from.kinds[i] != field::cache_control) continue;
        each_element(from.lines[i].value, [&](std::string_view word) {
            const auto name = word.substr(0, word.find('='));
            if (weir::same_header_name(name, "no-store")) made.no_store = true;
            else if (weir::same_header_name(name, "no-cache")) made.no_cache = true;
            else if (weir::same_header_name(name, "private")) made.is_private = true;
            else if (weir::same_header_name(name, "max-age")) made.max_age = seconds_in(word);
            else if (weir::same_header_name(name, "s-maxage"))
                made.shared_max_age = seconds_in(word);
        });
    }
    return made;
}

std::size_t size_of(const std::string& key, const cached_response& one) noexcept
{
    return key.size() + one.head.size() + one.body.size() + 256;  // of the nodes that hold it
}

}  // namespace

bool may_use_cache(const request_head& from) noexcept
{
    if ((from.method != "GET" && from.method != "HEAD") || from.has(field::authorization) ||
        from.has(field::range) || from.body.by != body_plan::kind::none)
        return false;
    const auto said = read_cache_control(from);
    return !said.no_store && !said.no_cache && said.max_age != 0;
}

std::optional<weir::duration> lifetime(const response_head& from) noexcept
{
    const auto said = read_cache_control(from);
    const auto age  = said.shared_max_age ? said.shared_max_age : said.max_age;
    if (from.status != 200 || said.no_store || said.no_cache || said.is_private || !age ||
        *age == 0 || from.has(field::set_cookie) || from.has(field::vary) ||
        from.has(field::content_range))
        return std::nullopt;
    return seconds(*age);
}

std::string cache_key(std::string_view location, const request_head& from, bool secure)
{
    std::string key(location);
    key.append(secure ? "\ns\n" : "\n\n").append(from.authority).append("\n").append(from.target);
    return key;
}

void response_cache::resize(std::size_t bytes)
{
    const std::lock_guard lock(mutex_);
    most_ = bytes;
    while (bytes_ > most_) drop(entries_.find(*by_use_.back()));
}

std::size_t response_cache::most_of_one() const
{
    const std::lock_guard lock(mutex_);
    return most_ / 16;
}

std::size_t response_cache::bytes() const
{
    const std::lock_guard lock(mutex_);
    return bytes_;
}

std::shared_ptr<const cached_response> response_cache::find(const std::string& key,
                                                            weir::instant      at)
{
    const std::lock_guard lock(mutex_);
    const auto            found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    if (found->second.response->until <= at) {
        drop(found);
        return nullptr;
    }
    by_use_.splice(by_use_.begin(), by_use_, found->second.place);
    return found->second.response;
}

void response_cache::keep(const std::string& key, std::shared_ptr<const cached_response> one)
{
    const std::lock_guard lock(mutex_);
    const auto            size = size_of(key, *one);
    if (size > most_ / 16) return;
    if (const auto old = entries_.find(key); old != entries_.end()) drop(old);
    while (bytes_ + size > most_) drop(entries_.find(*by_use_.back()));
    const auto made = entries_.emplace(key, entry{std::move(one), {}}).first;
    by_use_.push_front(&made->first);
    made->second.place = by_use_.begin();
    bytes_ += size;
}

void response_cache::drop(entries::iterator one)
{
    bytes_ -= size_of(one->first, *one->second.response);
    by_use_.erase(one->second.place);
    entries_.erase(one);
}

}  // namespace proxy
