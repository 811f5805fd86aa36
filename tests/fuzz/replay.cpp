// SPDX-License-Identifier: BSL-1.0

// Runs a fuzz target over every file of the folders it is given, so that the kept corpus is a test
// with any compiler. Exit 1 if there was no file: an empty corpus proves nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv)
{
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    for (int i = 1; i < argc; ++i)
        for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
            if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());

    for (const auto& file : files) {
        std::printf("%s\n", file.c_str());
        std::fflush(stdout);  // so that the last name printed is the one that crashed
        std::ifstream stream(file, std::ios::binary);
        if (!stream) return 1;
        const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::printf("%zu files\n", files.size());
    return files.empty() ? 1 : 0;
}
