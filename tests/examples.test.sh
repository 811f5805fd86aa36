#!/usr/bin/env bash
# Builds each example as a stranger starts it: optimised, where the compiler sees other things to
# warn about than in the other builds, and looks whether the last line is a program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for source in examples/*.cpp examples/*/CMakeLists.txt; do
    name=${source#examples/}
    name=${name%%[./]*}
    program=$(examples/run --build "$name" 2>/dev/null | tail -n 1) || true
    if [[ ! -x $program ]]; then
        echo "examples/run --build $name gave no program but: $program"
        examples/run --build "$name"
        exit 1
    fi
done
