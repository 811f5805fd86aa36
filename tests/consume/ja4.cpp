// SPDX-License-Identifier: BSL-1.0

// An outside program that reads a fingerprint. Exits with 0 if it is the one that it must be.

#include <weir/extract/ja4.hpp>

#include <string>

int main()
{
    // TLS 1.2 without extensions; ciphers c02f and 009c.
    std::string hello("\x01\x00\x00\x2b\x03\x03", 6);
    hello.append(32, '\0').append("\x00\x00\x04\xc0\x2f\x00\x9c\x01\x00", 9);
    const auto reading = weir::read_client_hello(hello);
    if (reading.state != weir::hello_state::complete) return 1;
    return weir::ja4(reading.hello).bytes() == "t12i020000_08dfa304a768_000000000000" ? 0 : 1;
}
