// SPDX-License-Identifier: BSL-1.0

// A hello of Chromium, from its bytes to its JA4, against the two SHA-256 digests that JA4 cannot
// do without. All figures of a ratio come from one run, in turn, and are medians.

#include "weir/extract/ja4.hpp"
#include "weir/extract/tls_records.hpp"

#include "reach.hpp"

#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The handshake message, as it was captured.
const std::string& chromium()
{
    static const std::string message = [] {
        const auto    here = std::filesystem::path(__FILE__).parent_path().parent_path();
        std::ifstream file(here / "tests/vectors/hellos/chromium_1-1.hex");
        std::string   text, bytes;
        file >> text;
        for (std::size_t i = 0; i + 1 < text.size(); i += 2)
            bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
        if (weir::read_client_hello(bytes).state != weir::hello_state::complete) std::abort();
        return bytes;
    }();
    return message;
}

const std::string& chromium_record()
{
    static const std::string record = [] {
        const auto size = chromium().size();
        return std::string("\x16\x03\x01") + static_cast<char>(size >> 8) +
               static_cast<char>(size & 0xff) + chromium();
    }();
    return record;
}

/// What is digested: the texts between the underscores of JA4_r.
std::array<std::string, 2> digested_texts()
{
    const auto  hello = weir::read_client_hello(chromium()).hello;
    std::string raw(ja4_r(hello, {}), '\0');
    ja4_r(hello, raw);
    const auto first = raw.find('_'), second = raw.find('_', first + 1);
    return {raw.substr(first + 1, second - first - 1), raw.substr(second + 1)};
}

/// The fastest way that OpenSSL 3 has: the algorithm looked up once, one context.
void two_sha256(benchmark::State& state)
{
    const auto                    texts   = digested_texts();
    const auto* const             sha256  = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    auto* const                   context = EVP_MD_CTX_new();
    std::array<unsigned char, 32> digest{};
    for (auto _ : state)
        for (const auto& text : texts) {
            EVP_DigestInit_ex2(context, sha256, nullptr);
            EVP_DigestUpdate(context, text.data(), text.size());
            EVP_DigestFinal_ex(context, digest.data(), nullptr);
            benchmark::DoNotOptimize(digest);
        }
    EVP_MD_CTX_free(context);
}

void read_hello(benchmark::State& state)
{
    std::string_view message = chromium();
    for (auto _ : state) {
        benchmark::DoNotOptimize(message);
        benchmark::DoNotOptimize(weir::read_client_hello(message));
    }
}

void ja4_from_message(benchmark::State& state)
{
    std::string_view message = chromium();
    for (auto _ : state) {
        benchmark::DoNotOptimize(message);
        benchmark::DoNotOptimize(ja4(weir::read_client_hello(message).hello));
    }
}

void ja4_from_records(benchmark::State& state)
{
    std::vector<char> room(16'384);
    std::string_view  stream = chromium_record();
    for (auto _ : state) {
        benchmark::DoNotOptimize(stream);
        weir::tls_records records(room);
        records.feed(stream);
        benchmark::DoNotOptimize(ja4(*records.hello()));
    }
}

/// What a TLS server does for each connection with adapt/openssl_hello.hpp.
void both_keys(benchmark::State& state)
{
    std::string_view message = chromium();
    for (auto _ : state) {
        benchmark::DoNotOptimize(message);
        const auto hello = weir::read_client_hello(message).hello;
        benchmark::DoNotOptimize(ja4(hello));
        benchmark::DoNotOptimize(stable_key(hello));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    using benchmark::RegisterBenchmark;
    RegisterBenchmark("two_sha256", two_sha256);
    RegisterBenchmark("read_hello", read_hello);
    RegisterBenchmark("ja4_from_message", ja4_from_message);
    RegisterBenchmark("ja4_from_records", ja4_from_records);
    RegisterBenchmark("ja4_and_stable_key", both_keys);
    const auto run = bench::run(argc, argv);
    bench::reach("ja4/two_sha256", run.time("ja4_from_message") / run.time("two_sha256"),
                 bench::goal::at_most, 2);
    bench::reach("ja4_from_records/two_sha256",
                 run.time("ja4_from_records") / run.time("two_sha256"), bench::goal::at_most, 2);
}
