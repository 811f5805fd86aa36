// SPDX-License-Identifier: BSL-1.0

// Who a server with these settings would take a request to be from:
//
//     weir-client-address --peer 10.0.0.1 --hops 1 '6.6.6.6, 203.0.113.7'
//
// prints the client address, the key it is counted by, and why it is degraded or what is
// misconfigured, if so (names as in docs/warnings.md).

#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weir/extract/client_ip.hpp"

namespace {

constexpr const char* usage =
    "usage: weir-client-address --peer ADDRESS|unix [--trust CIDR|unix|private[,...]] [--hops N]\n"
    "           [--header X-Forwarded-For|Forwarded|NAME] [--prefix 64] [--] LINE...\n"
    "Each LINE is the value of one header line, in order; none means that there is no such "
    "header.\n"
    "A header of another NAME is one that the edge overwrites.\n";

struct settings {
    weir::peer                     peer;
    weir::client_ip_options        source = {.warn = nullptr};
    std::vector<weir::header_line> lines;
};

[[noreturn]] void reject(std::string_view option, const std::string& why)
{
    throw std::invalid_argument(std::string(option) + ": " + why);
}

int number(std::string_view option, std::string_view text)
{
    int        value = 0;
    const auto end   = text.data() + text.size();
    const auto read  = std::from_chars(text.data(), end, value);
    if (text.empty() || read.ptr != end || read.ec != std::errc{})
        reject(option, weir::detail::shown(text) + " is not a whole number in range");
    return value;
}

std::vector<std::string> split(std::string_view text)
{
    std::vector<std::string> entries;
    for (auto comma = text.find(','); comma != text.npos; comma = text.find(',')) {
        entries.emplace_back(text.substr(0, comma));
        text.remove_prefix(comma + 1);
    }
    entries.emplace_back(text);
    return entries;
}

weir::peer peer_from(std::string_view text)
{
    const auto peer = weir::peer::parse(text);
    if (peer.address() || text == "unix") return peer;
    reject("--peer", weir::detail::shown(text) + " is not allowed; allowed is an address or unix");
}

/// Takes one option alone first, so that what the library says of it can name the option.
void check(std::string_view option, const weir::client_ip_options& alone)
{
    try {
        const weir::client_ip source(alone);
    } catch (const std::invalid_argument& wrong) {
        reject(option, wrong.what());
    }
}

void set(settings& out, std::string_view option, std::string_view value)
{
    auto& source = out.source;
    if (option == "--peer") {
        out.peer = peer_from(value);
    } else if (option == "--trust") {
        for (auto& entry : split(value)) source.trusted.push_back(std::move(entry));
        check(option, {.trusted = source.trusted, .warn = nullptr});
    } else if (option == "--hops") {
        source.trusted_hops = number(option, value);
        check(option, {.trusted_hops = source.trusted_hops, .warn = nullptr});
    } else if (option == "--header") {
        source.header               = value;
        source.edge_replaces_header = !weir::same_header_name(value, "X-Forwarded-For") &&
                                      !weir::same_header_name(value, "Forwarded");
        check(option, {.header = source.header, .edge_replaces_header = true, .warn = nullptr});
    } else if (option == "--prefix") {
        source.prefix = number(option, value);
        check(option, {.prefix = source.prefix, .warn = nullptr});
    } else {
        reject(option, "no such option");
    }
}

settings read(const std::vector<std::string_view>& arguments)
{
    settings out;
    bool     has_peer = false, options = true;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto argument = arguments[i];
        if (options && argument == "--") {
            options = false;
        } else if (options && argument.starts_with("--")) {
            if (++i == arguments.size()) reject(argument, "its value is missing");
            set(out, argument, arguments[i]);
            has_peer = has_peer || argument == "--peer";
        } else {
            out.lines.push_back({.value = argument});
        }
    }
    if (!has_peer) reject("--peer", "is missing; allowed is an address or unix");
    check("--hops", out.source);  // what is left can only be a count that the header rules out
    for (auto& line : out.lines) line.name = out.source.header;
    return out;
}

void print(const weir::client& client, const weir::client_ip& source)
{
    std::puts(client ? to_string(*client.address()).c_str() : "none");
    std::printf("key %s\n", to_string(client).c_str());
    if (const auto why = client.degraded())
        std::puts(("degraded " + std::string(name(*why))).c_str());
    for (const auto seen : source.warnings())
        std::puts(("warning " + std::string(name(seen)) + ' ' + std::string(text(seen))).c_str());
}

}  // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string_view> arguments(argv + (argc > 0), argv + argc);
    if (arguments.size() == 1 && arguments[0] == "--help") return std::fputs(usage, stdout) < 0;
    try {
        const auto            all = read(arguments);
        const weir::client_ip source(all.source);
        print(source(weir::request(all.lines, {.peer = all.peer})), source);
    } catch (const std::invalid_argument& wrong) {
        std::fprintf(stderr, "weir-client-address: %s\n", wrong.what());
        return 2;
    }
}
