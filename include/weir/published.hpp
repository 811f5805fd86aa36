// SPDX-License-Identifier: BSL-1.0
#pragma once

// A small value that many threads read whole while one replaces it.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

namespace weir {

/// Readers copy the value and look again when it was replaced meanwhile (a sequence lock); they
/// write nothing, so reading scales. Thread-safe; writers take turns.
template <class T>
    requires(std::is_trivially_copyable_v<T>)
class published {
public:
    explicit published(const T& value) noexcept { put(value); }

    published(const published&)            = delete;
    published& operator=(const published&) = delete;

    [[nodiscard]] T load() const noexcept
    {
        for (;;) {
            const auto before = version_.load(std::memory_order_acquire);
            const auto words  = copy();
            if (before % 2 == 0 && before == version_.load(std::memory_order_relaxed)) [[likely]]
                return value_of(words);
        }
    }

    void store(const T& value) noexcept
    {
        const std::lock_guard turn(writing_);
        const auto            version = version_.load(std::memory_order_relaxed);
        version_.store(version + 1, std::memory_order_relaxed);  // odd: being written
        put(value);
        version_.store(version + 2, std::memory_order_release);
    }

private:
    static constexpr std::size_t count = (sizeof(T) + 7) / 8;
    using words_type                   = std::array<std::uint64_t, count>;

    // Each word is acquired and released, not fenced: the thread sanitizer knows no fences, and on
    // the usual machines it costs the same.
    words_type copy() const noexcept
    {
        words_type words;
        for (std::size_t i = 0; i < count; ++i) words[i] = words_[i].load(std::memory_order_acquire);
        return words;
    }

    void put(const T& value) noexcept
    {
        words_type words{};
        std::memcpy(words.data(), &value, sizeof(T));
        for (std::size_t i = 0; i < count; ++i) words_[i].store(words[i], std::memory_order_release);
    }

    static T value_of(const words_type& words) noexcept
    {
        alignas(T) std::array<std::byte, sizeof(T)> bytes;
        std::memcpy(bytes.data(), words.data(), sizeof(T));
        return std::bit_cast<T>(bytes);
    }

    std::atomic<std::uint64_t>                    version_{0};
    std::array<std::atomic<std::uint64_t>, count> words_{};
    std::mutex                                    writing_;
};

}  // namespace weir
