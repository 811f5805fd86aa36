# Conan 2, from the checkout this file stands in: conan create cmake/packaging/conan
import os

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class WeirRecipe(ConanFile):
    name = "weir"
    version = "0.1.0"
    description = "Rate limiting for C++ servers: yes, no or later, why, and until when"
    license = "BSL-1.0"
    topics = ("rate-limiting", "http", "server")
    settings = "os", "arch", "compiler", "build_type"
    options = {"sqlite": [True, False]}
    default_options = {"sqlite": False}

    def export_sources(self):
        checkout = os.path.join(self.recipe_folder, "..", "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "backends/*"):
            copy(self, pattern, checkout, self.export_sources_folder)

    def configure(self):
        self.package_type = "static-library" if self.options.sqlite else "header-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.sqlite:
            self.requires("openssl/[>=3.0 <4]")
            self.requires("sqlite3/[>=3.32 <4]")

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        if not self.info.options.sqlite:
            self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("WEIR_TESTS", "WEIR_BENCH", "WEIR_EXAMPLES"):
            toolchain.cache_variables[option] = False
        toolchain.cache_variables["WEIR_INSTALL"] = True
        toolchain.cache_variables["WEIR_SQLITE"] = bool(self.options.sqlite)
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The targets of the installed package, under the names it gives them.
        components = {"core": [], "httplib": ["core"], "beast": ["core"]}
        if self.options.sqlite:
            components |= {"remote": ["core", "openssl::crypto"], "sqlite": ["remote", "sqlite3::sqlite3"]}
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        for component, requires in components.items():
            part = self.cpp_info.components[component]
            part.set_property("cmake_target_name", f"weir::{component}")
            part.requires = requires
            part.bindirs = []
            compiled = component in ("remote", "sqlite")
            part.libdirs = ["lib"] if compiled else []
            part.libs = [f"weir_{component}"] if compiled else []
            if component == "sqlite" and self.settings.os == "Linux":
                part.system_libs = ["pthread"]
