# SPDX-License-Identifier: BSL-1.0
"""packaging.test.py SOURCE VERSION: the recipes parse, and say what CMake says.

Conan and vcpkg are not asked: neither is in Debian. This keeps their recipes honest cheaply.
"""

import json
import pathlib
import py_compile
import re
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
version = sys.argv[2]
packaging = root / "cmake/packaging"
failures = []


def expect(claim, holds):
    if not holds:
        failures.append(claim)


def text(path):
    return (root / path).read_text(encoding="utf-8")


# One version everywhere.
manifest = json.loads(text("cmake/packaging/vcpkg/vcpkg.json"))
recipe = text("cmake/packaging/conan/conanfile.py")
header = text("include/weir/version.hpp")
major, minor, patch = (int(part) for part in version.split("."))
number = major * 1_000_000 + minor * 1_000 + patch
expect("vcpkg.json has the version of CMake", manifest["version-semver"] == version)
expect("conanfile.py has the version of CMake", f'version = "{version}"' in recipe)
expect("version.hpp has the version of CMake", f'version = "{version}"' in header)
expect("WEIR_VERSION has the version of CMake", f"#define WEIR_VERSION {number}\n" in header)
expect("CHANGELOG.md has an entry for the version", f"\n## {version}" in text("CHANGELOG.md"))

# Options: whatever a recipe or preset sets exists, and each feature is an option of that name.
cmake = text("CMakeLists.txt")
options = set(re.findall(r"^option\((WEIR_\w+)", cmake, re.MULTILINE))
presets = json.loads(text("CMakePresets.json"))
named = {
    "portfile.cmake": set(re.findall(r"-D(WEIR_\w+)", text("cmake/packaging/vcpkg/portfile.cmake"))),
    "conanfile.py": set(re.findall(r'"(WEIR_\w+)"', recipe)),
    "CMakePresets.json": {name for preset in presets["configurePresets"]
                          for name in preset["cacheVariables"] if name.startswith("WEIR_")},
    "vcpkg.json": {"WEIR_" + name.upper() for name in manifest.get("features", {})},
}
for file, names in named.items():
    expect(f"{file} sets only options of CMake, not {sorted(names - options)}", names <= options)
for file in ("portfile.cmake", "conanfile.py"):
    wanted = options - {"WEIR_FUZZ"}  # off unless asked for
    expect(f"{file} leaves none of {sorted(wanted)} to chance", wanted <= named[file])

# Components: the Conan recipe names all of them.
lists = [cmake] + [file.read_text(encoding="utf-8") for file in root.glob("backends/*/CMakeLists.txt")]
for component in re.findall(r"^ *weir_component\((\w+)", "\n".join(lists), re.MULTILINE):
    expect(f"conanfile.py knows component {component}", f'"{component}": [' in recipe)

# The recipes are Python.
with tempfile.TemporaryDirectory() as scratch:
    for file in packaging.glob("conan/**/conanfile.py"):
        try:
            py_compile.compile(str(file), cfile=f"{scratch}/compiled", doraise=True)
        except py_compile.PyCompileError as error:
            expect(f"{file.relative_to(root)} compiles: {error}", False)

for claim in failures:
    print(f"not so: {claim}")
sys.exit(1 if failures else 0)
