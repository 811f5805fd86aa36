# shellcheck shell=bash
# What the run scripts share; they source it.

# install_missing PACKAGE...: asks the network only if one of them is not there yet. On systems
# without apt it does nothing, and CMake says what it does not find.
install_missing()
{
    command -v apt-get >/dev/null || return 0
    local package missing=()
    for package in "$@"; do
        [[ $(dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null) == *' installed' ]] ||
            missing+=("$package")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0

    local as_root=()
    [[ $(id -u) -eq 0 ]] || as_root=(sudo)
    echo "installing ${missing[*]}" >&2
    "${as_root[@]}" apt-get update -qq >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# names_in FOLDER: the programs of a folder of which each has one source file.
names_in()
{
    find "$1" -maxdepth 1 -name '*.cpp' -printf '%f\n' | sed 's/\.cpp$//' | sort | paste -sd' '
}

# What every build needs. CMake takes the launcher and the number of jobs from the environment.
# shellcheck disable=SC2034  # the scripts read it
build_packages=(g++ cmake ninja-build pkg-config libsqlite3-dev libpq-dev libssl-dev)
if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
export CMAKE_BUILD_PARALLEL_LEVEL
