// SPDX-License-Identifier: BSL-1.0
#pragma once

// A small value that many threads read whole while one replaces it.

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

namespace weir {

/// Readers copy the value and look again when it was replaced meanwhile (a sequence lock); they
/// write nothing, so reading scales. Thread-safe; writers take turns.
template <class T>
    requires(std::is_trivially_copyable_v<T>&& std::default_initializable<T>)
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
        return [this]<std::size_t... I>(std::index_sequence<I...>)
        {
            return words_type{words_[I].load(std::memory_order_acquire)...};
        }
        (std::make_index_sequence<count>());
    }

    void put(const T& value) noexcept
    {
        words_type words{};
        std::memcpy(words.data(), &value, sizeof(T));
        for (std::size_t i = 0; i < count; ++i)
            words_[i].store(words[i], std::memory_order_release);
    }

    /// Word by word: copied as a whole, it would be read in wider pieces than it was just written
    /// in, and the processor would have to wait for them.
    static T value_of(const words_type& words) noexcept
    {
        T value;
        [&]<std::size_t... I>(std::index_sequence<I...>)
        {
            (std::memcpy(reinterpret_cast<std::byte*>(&value) + 8 * I, &words[I],
                         std::min<std::size_t>(8, sizeof(T) - 8 * I)),
             ...);
        }
        (std::make_index_sequence<count>());
        return value;
    }

    std::atomic<std::uint64_t>                    version_{0};
    std::array<std::atomic<std::uint64_t>, count> words_{};
    std::mutex                                    writing_;
};

}  // namespace weir
