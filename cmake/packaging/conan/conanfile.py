# Conan 2, from the checkout this file stands in: conan create cmake/packaging/conan
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class WeirRecipe(ConanFile):
    name = "weir"
    version = "0.1.0"
    description = "Rate limiting for C++ servers: yes, no or later, why, and until when"
    license = "BSL-1.0"
    topics = ("rate-limiting", "http", "server", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def export_sources(self):
        checkout = os.path.join(self.recipe_folder, "..", "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, checkout, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("WEIR_TESTS", "WEIR_BENCH", "WEIR_EXAMPLES"):
            toolchain.cache_variables[option] = False
        toolchain.cache_variables["WEIR_INSTALL"] = True
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The targets of the installed package, under the names it gives them.
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        for component, requires in {"core": [], "httplib": ["core"]}.items():
            self.cpp_info.components[component].set_property(
                "cmake_target_name", f"weir::{component}")
            self.cpp_info.components[component].requires = requires
            self.cpp_info.components[component].bindirs = []
            self.cpp_info.components[component].libdirs = []
