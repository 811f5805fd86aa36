// SPDX-License-Identifier: BSL-1.0
#pragma once

// Case tables: tests/vectors/*.tsv as rows of cells. `<empty>` is the empty text, `\xHH` a byte.

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace reference {

using row = std::vector<std::string>;

inline std::string cell(const std::string& written)
{
    if (written == "<empty>") return {};
    std::string out;
    for (std::size_t i = 0; i < written.size(); ++i) {
        const bool escape = written.compare(i, 2, "\\x") == 0 && i + 3 < written.size();
        out += escape ? static_cast<char>(std::stoi(written.substr(i + 2, 2), nullptr, 16))
                      : written[i];
        if (escape) i += 3;
    }
    return out;
}

inline row cells(const std::string& line)
{
    row         out;
    std::size_t from = 0;
    for (auto tab = line.find('\t'); tab != line.npos; tab = line.find('\t', from)) {
        out.push_back(cell(line.substr(from, tab - from)));
        from = tab + 1;
    }
    out.push_back(cell(line.substr(from)));
    return out;
}

/// The rows of a table of at least `least` columns; a missing file or a short row throws.
inline std::vector<row> table(const std::string& name, std::size_t least)
{
    std::ifstream file(std::string(WEIR_VECTORS_DIR) + '/' + name);
    if (!file) throw std::runtime_error("no table " + name);
    std::vector<row> out;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        out.push_back(cells(line));
        if (out.back().size() < least) throw std::runtime_error(name + ": short row: " + line);
    }
    return out;
}

}  // namespace reference
