// SPDX-License-Identifier: BSL-1.0

// Compiled twice: PART is in_shared or in_static.

#include "parts.hpp"

#pragma GCC visibility push(default)
namespace PART {

bool admits(const parts::limiter& limit, weir::instant at)
{
    return bool(limit.admit(parts::who, at));
}

weir::key key_by(const parts::limiter& limit)
{
    return limit.digest(parts::who);
}

}  // namespace PART
#pragma GCC visibility pop
