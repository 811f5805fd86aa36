// SPDX-License-Identifier: BSL-1.0
#pragma once

// What people write by hand: a token bucket in floating point for each key, in an unordered_map of
// strings behind a mutex; or 64 of these, chosen by the key's hash.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rivals {

template <std::size_t Shards>
class locked_map {
public:
    bool admit(std::string_view who, double rate, double burst)
    {
        const std::string key(who);
        auto&             own = parts_[std::hash<std::string>{}(key) / 7919 % Shards];
        const auto        now = std::chrono::steady_clock::now();
        std::lock_guard   turn(own.mutex);
        auto&             bucket = own.buckets.try_emplace(key, tokens{burst, now}).first->second;
        const double      passed = std::chrono::duration<double>(now - bucket.at).count();
        bucket.left              = std::min(burst, bucket.left + passed * rate);
        bucket.at                = now;
        if (bucket.left < 1) return false;
        bucket.left -= 1;
        return true;
    }

private:
    struct tokens {
        double                                left;
        std::chrono::steady_clock::time_point at;
    };
    struct alignas(64) part {
        std::mutex                              mutex;
        std::unordered_map<std::string, tokens> buckets;
    };

    std::array<part, Shards> parts_;
};

}  // namespace rivals
