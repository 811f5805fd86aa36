// SPDX-License-Identifier: BSL-1.0
#pragma once

// Zeroed memory for a table, taken once.

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace weir {

/// `count` zeroed objects on cache lines, in huge pages where the system lends them: a miss in a
/// large table then costs no second one in the page tables. Throws std::bad_alloc. Immutable in
/// size; the owner decides about threads.
template <class T>
    requires(std::is_trivially_destructible_v<T>)
class pages {
public:
    explicit pages(std::size_t count) : count_(count), memory_(allocate(count * sizeof(T)))
    {
#if defined(__linux__)
        if (count * sizeof(T) >= huge)
            ::madvise(memory_.get(), rounded(count * sizeof(T)), MADV_HUGEPAGE);
#endif
        // Writing makes the pages ours now rather than in the middle of a decision.
        std::uninitialized_value_construct_n(reinterpret_cast<T*>(memory_.get()), count);
    }

    [[nodiscard]] T*          data() const noexcept { return reinterpret_cast<T*>(memory_.get()); }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(T); }
    T&                        operator[](std::size_t i) const noexcept { return data()[i]; }

private:
    static constexpr std::size_t huge = std::size_t{2} << 20;
    static constexpr std::size_t line = 64;

    struct release {
        std::align_val_t alignment;
        void operator()(std::byte* memory) const noexcept { ::operator delete(memory, alignment); }
    };

    static constexpr std::size_t rounded(std::size_t bytes) noexcept { return bytes / huge * huge; }

    static std::unique_ptr<std::byte, release> allocate(std::size_t bytes)
    {
        const std::align_val_t alignment{bytes >= huge ? huge : line};
        return {static_cast<std::byte*>(::operator new(bytes, alignment)), release{alignment}};
    }

    std::size_t                         count_;
    std::unique_ptr<std::byte, release> memory_;
};

}  // namespace weir
