// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/proxy_protocol.hpp"

#include <string>
#include <string_view>

#include "catch.hpp"
#include "reference/table.hpp"

using weir::proxy_end;
using weir::proxy_state;
using weir::read_proxy_header;

namespace {

const std::string signature("\r\n\r\n\0\r\nQUIT\n", 12);

std::string stream_of(const std::string& cell)
{
    return cell.starts_with("<v2>") ? signature + cell.substr(4) : cell;
}

std::string outcome(const weir::proxy_reading& reading)
{
    if (reading.state == proxy_state::need_more) return "need_more";
    if (reading.state == proxy_state::rejected) return std::string(name(reading.fault.value()));
    return reading.header.local ? "local" : "accepted";
}

std::string text(const proxy_end& end)
{
    if (end.at.is_unknown()) return "-";
    const auto at = end.at.is_unix_socket() ? "unix" : to_string(*end.at.address());
    return at + ' ' + std::to_string(end.port);
}

}  // namespace

TEST_CASE("a stream says what the rows say and no more bytes are taken than its header has")
{
    for (const auto& row : reference::table("proxy_protocol.tsv", 6)) {
        INFO("row " << row[0]);
        const auto reading = read_proxy_header(stream_of(row[5]));
        CHECK(outcome(reading) == row[1]);
        CHECK(text(reading.header.source) == row[3]);
        CHECK(text(reading.header.destination) == row[4]);
        if (reading.state == proxy_state::accepted)
            CHECK(std::to_string(reading.header.consumed) == row[2]);
        if (reading.state == proxy_state::need_more)
            CHECK(std::to_string(reading.wanted) == row[2]);
    }
}

TEST_CASE("every row says the same however many of its bytes arrive at a time")
{
    for (const auto& row : reference::table("proxy_protocol.tsv", 6)) {
        INFO("row " << row[0]);
        const auto stream  = stream_of(row[5]);
        const auto whole   = read_proxy_header(stream);
        bool       settled = false;
        for (std::size_t arrived = 0; arrived <= stream.size(); ++arrived) {
            const auto part = read_proxy_header(std::string_view(stream).substr(0, arrived));
            CHECK((part == whole || (!settled && part.state == proxy_state::need_more)));
            settled = settled || part.state != proxy_state::need_more;
        }
    }
}

TEST_CASE("a reader that takes what is wanted and no more ends exactly behind the header")
{
    for (const auto& row : reference::table("proxy_protocol.tsv", 6)) {
        if (row[1] != "accepted" && row[1] != "local") continue;
        INFO("row " << row[0]);
        const auto  stream = stream_of(row[5]) + "GET / HTTP/1.1\r\n\r\n";
        std::size_t taken = 0, reads = 0;
        auto        reading = read_proxy_header("");
        for (; reading.state == proxy_state::need_more; ++reads) {
            taken   = reading.wanted;
            reading = read_proxy_header(std::string_view(stream).substr(0, taken));
        }
        REQUIRE(reading.state == proxy_state::accepted);
        CHECK(taken == reading.header.consumed);
        CHECK(reads <= 107);
    }
}

TEST_CASE("O13: a header over the cap is rejected before its bytes are there")
{
    const auto first16 = signature + std::string("\x21\x11\x01\x00", 4);
    CHECK(read_proxy_header(first16).wanted == 272);
    CHECK(read_proxy_header(first16, {.most_bytes = 272}).wanted == 272);
    CHECK(outcome(read_proxy_header(first16, {.most_bytes = 271})) == "too_long");
    const auto full = first16 + std::string("\xC0\0\2\1\xC0\0\2\2\0\x7B\x16\x2E\4\0\xF1", 15);
    CHECK(outcome(read_proxy_header(full + std::string(241, 'x'))) == "accepted");
}

TEST_CASE("a header that names nobody leaves the peer of the socket and another replaces it")
{
    const weir::peer socket = weir::peer::parse("10.0.0.9");
    const auto       peer   = [&](std::string_view stream) {
        return read_proxy_header(stream).header.peer_behind(socket);
    };
    CHECK(peer("PROXY UNKNOWN\r\n") == socket);
    CHECK(peer("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n") == weir::peer::parse("192.0.2.1"));
    CHECK(peer(signature + std::string("\x20\0\0\0", 4)) == socket);
    CHECK(peer(signature + std::string("\x21\x31\0\xD8", 4) + std::string(216, '\0')) ==
          weir::peer::unix_socket());
}

TEST_CASE("each flipped bit of a header with a checksum is noticed or leaves nobody named")
{
    const auto  rows = reference::table("proxy_protocol.tsv", 6);
    std::size_t seen = 0;
    for (const auto& row : rows) {
        if (row[0] != "W14.2" && row[0] != "W14.3") continue;
        const auto stream = stream_of(row[5]);
        const auto right  = read_proxy_header(stream).header;
        for (std::size_t bit = 0; bit < stream.size() * 8; ++bit) {
            auto flipped = stream;
            flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
            const auto reading = read_proxy_header(flipped);
            INFO("row " << row[0] << ", bit " << bit);
            // The checksum's own type byte may turn into that of another TLV: then there is none.
            const bool same = reading.header == right;
            CHECK((reading.state != proxy_state::accepted || reading.header.local || same));
            ++seen;
        }
    }
    CHECK(seen == (49 + 64) * 8);
}

TEST_CASE("a PROXY header is read while compiling")
{
    static_assert(read_proxy_header("PROXY TCP6 ::1 ::2 1 65535\r\n").header.destination.port ==
                  65535);
    static_assert(read_proxy_header("PROXY TCP6 ::1 ::2 1 65536\r\n").state ==
                  proxy_state::rejected);
    CHECK(read_proxy_header("").wanted == 15);
}
