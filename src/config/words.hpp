// SPDX-License-Identifier: BSL-1.0
#pragma once

// Keys whose values are words, as limits and restrictions have them.

#include <cstddef>
#include <string>
#include <string_view>

#include "weir/config/document.hpp"

namespace weir::config {

template <class Value>
struct word {
    std::string_view text  = {};
    Value            value = {};
};

/// `rate or inflight`, or as a list.
template <class Value, std::size_t Size>
std::string choice(const word<Value> (&words)[Size], bool as_list)
{
    std::string out;
    for (const auto& one : words)
        out.append(out.empty() ? "" : as_list ? ", " : " or ").append(one.text);
    return as_list ? "one of: " + out : out;
}

/// What is written within a sentence, without quotes, as the messages of the seed have it.
inline std::string bare(std::string_view written)
{
    const auto quoted = shown(written);
    return quoted.substr(1, quoted.size() - 2);
}

/// Of `fold` the case of letters does not matter.
template <class Value, std::size_t Size>
void read_word(const table& from, std::string_view key, const word<Value> (&words)[Size],
               Value& into, bool fold = false)
{
    const auto given = from.text(key);
    if (!given) return;
    for (const auto& one : words)
        if (one.text == *given || (fold && same_header_name(one.text, *given))) {
            into = one.value;
            return;
        }
    const bool as_list = Size > 3 || key == "step";  // as the seed has its messages
    from.reject(key, "Invalid " + std::string(key) + "(" + bare(*given) + "), expect " +
                         choice(words, as_list));
}

inline void read_status(const table& from, int& into)
{
    const auto given = from.integer("status");
    if (!given) return;
    if (*given < 400 || *given > 599) from.reject("status", "status must be between 400 and 599");
    else into = static_cast<int>(*given);
}

}  // namespace weir::config
