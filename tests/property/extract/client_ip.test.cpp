// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/client_ip.hpp"

#include <random>

#include "catch.hpp"
#include "reference/client_case.hpp"

namespace {

/// Draws header lines out of pieces that matter, so that most lists are nearly right.
class pieces {
public:
    explicit pieces(std::uint32_t seed) : random_(seed) {}

    std::size_t below(std::size_t bound)
    {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
    }

    reference::client_case draw()
    {
        reference::client_case out{below(reference::trust_cases().size()),
                                   below(reference::peer_texts.size()), below(2) == 0};
        for (auto lines = below(4); lines > 0; --lines) {
            std::string line;
            for (auto elements = below(6); elements > 0; --elements) {
                line += out.forwarded ? forwarded() : plain();
                if (elements > 1) line += separators[below(separators.size())];
            }
            if (!line.empty() && below(8) == 0)
                line[below(line.size())] = static_cast<char>(below(256));
            out.lines.push_back(std::move(line));
        }
        return out;
    }

private:
    std::string plain()
    {
        const auto node = nodes[below(nodes.size())];
        return below(6) == 0 ? '[' + std::string(node) + ']' + ports[below(ports.size())]
                             : node + std::string(below(4) == 0 ? ports[below(ports.size())] : "");
    }
    std::string forwarded()
    {
        const std::string node = nodes[below(nodes.size())];
        const bool        v6   = node.find(':') != node.npos;
        const std::string port = below(4) == 0 ? ports[below(ports.size())] : "";
        const bool        bare = !v6 && port.empty();
        std::string       out  = bare != (below(10) == 0)
                                     ? "for=" + node
                                     : "for=\"" + (v6 ? '[' + node + ']' : node) + port + '"';
        for (auto more = below(3); more > 0; --more)
            (below(2) == 0 ? out : out.insert(0, ";"))
                .insert(below(2) == 0 ? 0 : out.size(), extras[below(extras.size())]);
        return out;
    }

    static constexpr std::array nodes      = {"10.0.0.2",
                                              "10.200.0.1",
                                              "192.168.1.1",
                                              "fd00::2",
                                              "9.9.9.9",
                                              "203.0.113.7",
                                              "2001:db8::1",
                                              "2001:db8:8000::1",
                                              "::ffff:10.1.2.3",
                                              "::ffff:9.9.9.9",
                                              "FE80::1%eth0",
                                              "0.0.0.0",
                                              "::",
                                              "unknown",
                                              "_hidden",
                                              "10.0.0.256",
                                              "010.0.0.1",
                                              "",
                                              "2001:db8:1:2:3:4:5:6",
                                              "1::2::3",
                                              "::1.2.3.4"};
    static constexpr std::array ports      = {":80", ":0", ":65535", ":65536", ":",
                                              ":_x", ":_", ":a",     ":80:_x"};
    static constexpr std::array extras     = {"proto=http;",
                                              ";by=\"[::1]:80\"",
                                              ";host=\"a\\\"b, for=7.7.7.7\"",
                                              ";x=\"",
                                              ";",
                                              "FOR=6.6.6.6;",
                                              ";proto=https",
                                              ";y=\"\\\\\"",
                                              " "};
    static constexpr std::array separators = {",", ", ", " ,", ",,", ", ,", "\t,\t"};

    std::mt19937 random_;
};

}  // namespace

TEST_CASE("client_ip agrees with the slow walk and keeps its promises on 200000 drawn requests")
{
    pieces      draw(20261129);
    std::size_t degraded = 0, none = 0, clear = 0;
    for (int i = 0; i < 200'000; ++i) {
        const auto it    = draw.draw();
        const auto wrong = reference::wrong(it);
        if (!wrong.empty()) {
            std::string lines;
            for (const auto& line : it.lines) lines += '{' + line + '}';
            FAIL("trust case " << it.trust << ", peer " << reference::peer_texts[it.peer] << ", "
                               << (it.forwarded ? "Forwarded " : "X-Forwarded-For ") << lines
                               << ": " << wrong);
        }
        const auto who = reference::ask(it, reference::peer_texts[it.peer], it.lines);
        ++(!who ? none : who.degraded() ? degraded : clear);
    }
    // The draw is worth little if one kind of answer is rare.
    CHECK(none > 10'000);
    CHECK(degraded > 10'000);
    CHECK(clear > 10'000);
}
