// SPDX-License-Identifier: BSL-1.0
#pragma once

// Two libraries of one program, both compiled with the headers of Weir.

#include "weir/weir.hpp"

namespace parts {

using limiter = weir::limiter<weir::fixed_window, weir::memory_store>;

inline constexpr char who[] = "192.0.2.1";

}  // namespace parts

namespace in_shared {

bool      admits(const parts::limiter& limit, weir::instant at);
weir::key key_by(const parts::limiter& limit);

}  // namespace in_shared

namespace in_static {

bool      admits(const parts::limiter& limit, weir::instant at);
weir::key key_by(const parts::limiter& limit);

}  // namespace in_static
