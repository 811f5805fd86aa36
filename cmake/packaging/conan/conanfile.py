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
    options = {part: [True, False] for part in ("http", "ja4", "forms", "sqlite", "postgres")}
    default_options = {part: False for part in options}

    def export_sources(self):
        checkout = os.path.join(self.recipe_folder, "..", "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "backends/*"):
            copy(self, pattern, checkout, self.export_sources_folder)

    def configure(self):
        compiled = any(self.options.get_safe(part) for part in self.default_options)
        self.package_type = "static-library" if compiled else "header-library"

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.http:
            self.requires("re2/[>=20220601]")
            self.requires("tomlplusplus/[>=3.3 <4]")
        if self.options.ja4 or self.options.forms or self.options.sqlite or self.options.postgres:
            self.requires("openssl/[>=3.0 <4]")
        if self.options.sqlite:
            self.requires("sqlite3/[>=3.32 <4]")
        if self.options.postgres:
            self.requires("libpq/[>=14 <19]")

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        if not any(self.info.options.get_safe(part) for part in self.default_options):
            self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("WEIR_TESTS", "WEIR_BENCH", "WEIR_EXAMPLES"):
            toolchain.cache_variables[option] = False
        toolchain.cache_variables["WEIR_INSTALL"] = True
        toolchain.cache_variables["WEIR_HTTP"] = bool(self.options.http)
        toolchain.cache_variables["WEIR_JA4"] = bool(self.options.ja4)
        toolchain.cache_variables["WEIR_FORMS"] = bool(self.options.forms)
        toolchain.cache_variables["WEIR_SQLITE"] = bool(self.options.sqlite)
        toolchain.cache_variables["WEIR_POSTGRES"] = bool(self.options.postgres)
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
        components = {"core": [], "httplib": ["core"], "beast": ["core"], "asio": ["core"]}
        if self.options.http:
            components |= {"http": ["core", "re2::re2"]}
            components |= {"config": ["http", "tomlplusplus::tomlplusplus"]}
        if self.options.ja4:
            components |= {"ja4": ["core", "openssl::crypto"]}
        if self.options.forms:
            components |= {"forms": ["core", "openssl::crypto"]}
        if self.options.sqlite or self.options.postgres:
            components |= {"remote": ["core", "openssl::crypto"]}
        if self.options.sqlite:
            components |= {"sqlite": ["remote", "sqlite3::sqlite3"]}
        if self.options.postgres:
            components |= {"postgres": ["remote", "libpq::libpq"]}
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        for component, requires in components.items():
            part = self.cpp_info.components[component]
            part.set_property("cmake_target_name", f"weir::{component}")
            part.requires = requires
            part.bindirs = []
            compiled = component in ("http", "config", "ja4", "forms", "remote", "sqlite", "postgres")
            part.libdirs = ["lib"] if compiled else []
            part.libs = [f"weir_{component}"] if compiled else []
            if component == "remote" and self.settings.os == "Linux":
                part.system_libs = ["pthread"]
