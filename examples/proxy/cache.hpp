// SPDX-License-Identifier: BSL-1.0
#pragma once

// Responses that are kept in memory for as long as they say (RFC 9111), so that what a cache
// answers costs the upstream nothing. Simple on purpose: 200s of GET that name their own max-age
// and do not vary, whole or not at all, never anything about a person.

#include "head.hpp"

#include "weir/time.hpp"

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace proxy {

struct cached_response {
    std::string   head  = {};  ///< Status line and fields, without framing and the empty line.
    std::string   body  = {};  ///< Content, out of its chunks.
    weir::instant born  = {};  ///< When it was fresh: its Age is counted from here.
    weir::instant until = {};
};

/// Bounded by bytes; what was not used for longest goes first. Thread-safe.
class response_cache {
public:
    /// 0: keeps nothing.
    void resize(std::size_t bytes);

    [[nodiscard]] std::shared_ptr<const cached_response> find(const std::string& key,
                                                              weir::instant      at);
    void keep(const std::string& key, std::shared_ptr<const cached_response> one);

    /// The largest response that is kept.
    [[nodiscard]] std::size_t most_of_one() const;
    [[nodiscard]] std::size_t bytes() const;

private:
    struct entry {
        std::shared_ptr<const cached_response>  response;
        std::list<const std::string*>::iterator place;
    };
    using entries = std::unordered_map<std::string, entry>;

    void drop(entries::iterator one);

    mutable std::mutex            mutex_;
    std::size_t                   most_ = 0, bytes_ = 0;
    entries                       entries_;
    std::list<const std::string*> by_use_;  // the latest first; the keys stand in `entries_`
};

/// Whether a kept response may answer this request, and its own be kept: a GET or HEAD without
/// Authorization, Range and a Cache-Control that forbids it.
[[nodiscard]] bool may_use_cache(const request_head& from) noexcept;

/// How long a response may be kept: none if it must not be.
[[nodiscard]] std::optional<weir::duration> lifetime(const response_head& from) noexcept;

/// A host and a target, of a location.
[[nodiscard]] std::string cache_key(std::string_view location, const request_head& from,
                                    bool secure);

}  // namespace proxy
