// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which Weir this is. The same number stands in CMakeLists.txt, the Conan recipe and the vcpkg
// manifest; a test holds them equal.

#include <string_view>

// For #if: major * 1'000'000 + minor * 1'000 + patch.
#define WEIR_VERSION 1000

namespace weir {

/// The version as people write it. Before 1.0 a change of the middle number may break callers.
inline constexpr std::string_view version = "0.1.0";

}  // namespace weir
