// SPDX-License-Identifier: BSL-1.0

// The one main() of all test binaries: compiled once, because Catch2 2 takes long to compile.

#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

int main(int argc, char** argv)
{
    return Catch::Session().run(argc, argv);
}
