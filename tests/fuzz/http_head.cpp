// SPDX-License-Identifier: BSL-1.0

// Any bytes on a connection: what weir-proxy takes for a message has the fields and ends where
// Boost.Beast, an independent parser, says; and however the bytes come, they mean the same. The
// first byte: which kind of message, and how the pieces are drawn.

#include "body_reader.hpp"
#include "head.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

#include "reference/random.hpp"

namespace {

namespace http = boost::beast::http;
using kind     = proxy::body_plan::kind;

/// All that a reader makes of the bytes.
struct reading {
    std::string                                      start = {};
    std::vector<std::pair<std::string, std::string>> lines = {};  // by name, those of one in order
    kind                                             by    = kind::none;
    bool                                             keeps = false;
    std::string                                      content = {};
    std::optional<std::size_t>                       end     = {};  // none: more is to come

    bool operator==(const reading&) const = default;
};

void expect(bool holds, const char* claim)
{
    if (holds) return;
    std::fprintf(stderr, "http_head: not true that %s\n", claim);
    std::abort();
}

std::string lower(std::string_view text)
{
    std::string out(text);
    for (auto& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    return out;
}

void sort(reading& made)
{
    std::ranges::stable_sort(made.lines, {}, [](const auto& line) { return line.first; });
}

int read(std::string_view bytes, std::string_view, proxy::request_head& into)
{
    return read_head(bytes, into);
}
int read(std::string_view bytes, std::string_view method, proxy::response_head& into)
{
    return read_head(bytes, method, into);
}

std::string start_of(const proxy::request_head& head) { return std::string(head.method); }
std::string start_of(const proxy::response_head& head) { return std::to_string(head.status); }
std::string start_of(const http::request<http::string_body>& head)
{
    return std::string(head.method_string());
}
std::string start_of(const http::response<http::string_body>& head)
{
    return std::to_string(head.result_int());
}

/// The head is the same for all beginnings that have the whole of it, and of shorter ones it is
/// never said to be whole; what is refused stays so whatever follows.
template <class Head>
int read_from_beginnings(std::string_view bytes, std::string_view method, Head& whole)
{
    const int  status = read(bytes, method, whole);
    const auto step   = 1 + bytes.size() / 256;
    int        before = 0;
    for (std::size_t size = 0; size < bytes.size(); size += step) {
        Head      part;
        const int told = read(bytes.substr(0, size), method, part);
        expect(told == 0 || told == status, "more bytes only complete a head");
        expect(before == 0 || told == before, "what is known of a head stays");
        expect(told != 200 || part.bytes == whole.bytes, "a head ends where it ends");
        expect(status != 200 || (told == 200) == (size >= whole.bytes), "a head needs all of it");
        before = told;
    }
    return status;
}

/// In pieces of up to `most` bytes.
void read_body(std::string_view bytes, std::size_t most, reference::generator& random,
               const proxy::body_plan& plan, std::string& content, proxy::body_reader& body,
               std::size_t& took)
{
    body = proxy::body_reader(plan);
    while (took < bytes.size() && !body.done() && !body.bad()) {
        const auto piece = bytes.substr(took, 1 + random() % most);
        const auto count = body.feed(piece, [&](std::string_view part) { content += part; });
        expect(count == piece.size() || body.done() || body.bad(), "a piece is taken whole");
        took += count;
    }
}

/// What we say, or nothing if we refuse. The pieces may not matter.
template <class Head>
std::optional<reading> ours(std::string_view bytes, std::string_view method,
                            reference::generator& random)
{
    Head head;
    if (read_from_beginnings(bytes, method, head) != 200) return std::nullopt;
    reading made{.start = start_of(head), .by = head.body.by, .keeps = head.keep_alive};
    for (const auto& [name, value] : head.lines) made.lines.emplace_back(lower(name), value);
    sort(made);

    const auto         rest = bytes.substr(head.bytes);
    proxy::body_reader whole, split;
    std::string        again;
    std::size_t        took = 0, took_again = 0;
    read_body(rest, rest.size() + 1, random, head.body, made.content, whole, took);
    read_body(rest, 7, random, head.body, again, split, took_again);
    expect(whole.bad() == split.bad() && whole.done() == split.done(), "pieces do not matter");
    expect(made.content == again && took == took_again, "content is the same in pieces");
    if (whole.bad()) return std::nullopt;
    if (whole.done()) made.end = head.bytes + took;
    return made;
}

/// Gives a parser what it takes, up to the end of a head or of a message.
template <class Parser>
bool feed(Parser& parser, std::string_view bytes, std::size_t& used)
{
    boost::system::error_code failed;
    const auto                done = [&] {
        return parser.is_done() || (!parser.eager() && parser.is_header_done());
    };
    while (!failed && used < bytes.size() && !done())
        used += parser.put(boost::asio::buffer(bytes.data() + used, bytes.size() - used), failed);
    return (!failed || failed == http::error::need_more) && parser.is_header_done();
}

kind kind_of(const auto& parser)
{
    if (parser.chunked()) return kind::chunked;
    if (parser.content_length()) return kind::length;
    return parser.need_eof() ? kind::until_close : kind::none;
}

/// What Beast says, or nothing if it refuses. It adds trailers to the fields, hence two steps.
template <class Parser>
std::optional<reading> theirs(std::string_view bytes, Parser&& parser)
{
    parser.header_limit(std::numeric_limits<std::uint32_t>::max());
    parser.body_limit(boost::none);
    std::size_t used = 0;
    if (!feed(parser, bytes, used)) return std::nullopt;
    reading made{
        .start = start_of(parser.get()), .by = kind_of(parser), .keeps = parser.keep_alive()};
    for (const auto& field : parser.get())
        made.lines.emplace_back(lower(std::string_view(field.name_string())),
                                std::string_view(field.value()));
    sort(made);

    parser.eager(true);
    if (!feed(parser, bytes, used)) return std::nullopt;
    made.content = parser.get().body();
    if (parser.is_done()) made.end = used;
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0 || size > 4096) return 0;
    // Of its own size, so that a sanitizer sees a read past its end.
    const std::vector<char> kept(data + 1, data + size);
    std::string_view        bytes(kept.data(), kept.size());
    const bool              request = (data[0] & 1) != 0, head_only = (data[0] & 2) != 0;
    reference::generator    random(data[0]);

    const auto mine = request
                          ? ours<proxy::request_head>(bytes, "", random)
                          : ours<proxy::response_head>(bytes, head_only ? "HEAD" : "GET", random);
    if (!mine) return 0;
    // Beast takes no empty line before a request.
    const std::size_t before = request && bytes.starts_with("\r\n") ? 2 : 0;
    bytes.remove_prefix(before);
    http::response_parser<http::string_body> response;
    response.skip(head_only);
    auto other = request ? theirs(bytes, http::request_parser<http::string_body>())
                         : theirs(bytes, std::move(response));
    // Beast reads the grammar of chunk extensions, and a status line only with a blank at its end.
    expect(other || !request || mine->by == kind::chunked, "a request to us is one to Beast");
    if (!other) return 0;
    if (other->end) *other->end += before;
    expect(mine->start == other->start, "the first lines are the same");
    expect(mine->lines == other->lines, "the fields are the same");
    expect(!mine->keeps || other->keeps, "a connection that we keep is kept");
    expect(mine->content == other->content, "the content is the same");
    expect(mine->end == other->end, "the message ends at the same byte");
    // Beast tells the length of a body that is not sent: of a HEAD, of a 304.
    expect(mine->by == kind::none || mine->by == other->by, "the end is known in the same way");
    return 0;
}
