// SPDX-License-Identifier: BSL-1.0

// The fingerprints of one hello:
//
//     xxd -p hello.bin | weir-ja4
//
// reads a handshake message or the TLS records around it, as bytes or in hexadecimal, and prints a
// line each of `ja4`, `ja4_r`, `ja4_o`, `ja4_ro` and `stable_key`. What has none is told as
// `none REASON` and is exit 1.

#include "weir/extract/ja4.hpp"
#include "weir/extract/tls_records.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr const char* usage =
    "usage: weir-ja4 [--dtls|--quic] < HELLO\n"
    "HELLO: a handshake message or TLS records, as bytes or in hexadecimal. With --dtls a message\n"
    "with its DTLS header of 12 bytes, with --quic what the CRYPTO frames carry.\n";

/// More than any hello that is read takes, in hexadecimal and in records of one byte.
constexpr std::size_t most_input = 1'000'000;

std::string read_input()
{
    std::string       all;
    std::vector<char> page(65'536);
    std::size_t       count = 0;
    while (all.size() <= most_input && (count = std::fread(page.data(), 1, page.size(), stdin)) > 0)
        all.append(page.data(), count);
    return all;
}

int digit(char c) noexcept
{
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The bytes that the text stands for; none if it is no text of hexadecimal digits and blanks. No
/// hello begins with such a character, so what can be read as text is text.
std::optional<std::string> from_hex(std::string_view text)
{
    std::string bytes;
    int         high = -1;
    for (const char c : text) {
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
        if (digit(c) < 0) return std::nullopt;
        if (high < 0) high = digit(c);
        else bytes += static_cast<char>(high << 4 | digit(c)), high = -1;
    }
    if (high >= 0) return std::nullopt;
    return bytes;
}

void print(const char* name, std::string_view value)
{
    std::printf("%s %.*s\n", name, static_cast<int>(value.size()), value.data());
}

void print_raw(const char* name, const weir::client_hello& hello,
               std::size_t (*form)(const weir::client_hello&, std::span<char>) noexcept)
{
    std::string text(form(hello, {}), '\0');
    form(hello, text);
    print(name, text);
}

int tell(const weir::client_hello& hello)
{
    print("ja4", ja4(hello).bytes());
    print_raw("ja4_r", hello, weir::ja4_r);
    print("ja4_o", ja4_o(hello).bytes());
    print_raw("ja4_ro", hello, weir::ja4_ro);
    print("stable_key", stable_key(hello).bytes());
    return 0;
}

int none(std::string_view why)
{
    print("none", why);
    return 1;
}

int tell_none(weir::hello_state state, std::optional<weir::hello_fault> fault)
{
    return none(state == weir::hello_state::need_more ? "incomplete" : name(*fault));
}

int run(weir::hello_transport transport)
{
    const auto input = read_input();
    if (input.size() > most_input) return none("too_long");
    const auto bytes = from_hex(input).value_or(input);
    if (bytes.empty()) return none("empty");

    constexpr char handshake_record = 22;
    if (transport == weir::hello_transport::tls && bytes[0] == handshake_record) {
        std::vector<char> room(weir::hello_options{}.most_bytes);
        weir::tls_records records(room);
        records.feed(bytes);
        return records.hello() ? tell(*records.hello())
                               : tell_none(records.state(), records.fault());
    }
    const auto reading = weir::read_client_hello(bytes, {.transport = transport});
    return reading.state == weir::hello_state::complete ? tell(reading.hello)
                                                        : tell_none(reading.state, reading.fault);
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view option = argc == 2 ? argv[1] : "";
    if (option == "--help") return std::fputs(usage, stdout) < 0;
    if (argc == 1) return run(weir::hello_transport::tls);
    if (option == "--dtls") return run(weir::hello_transport::dtls);
    if (option == "--quic") return run(weir::hello_transport::quic);
    std::fputs(usage, stderr);
    return 2;
}
