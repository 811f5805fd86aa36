// SPDX-License-Identifier: BSL-1.0
#pragma once

// Catch2 as it is installed here: version 3, or version 2 (Debian 12). Tests use what both have.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
