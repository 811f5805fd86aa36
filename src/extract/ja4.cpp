// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/ja4.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace weir {
namespace {

void must(int done) noexcept
{
    if (done != 1) std::abort();
}

/// SHA-256 of the default provider, looked up once: the lookup costs more than a digest.
const EVP_MD* sha256() noexcept
{
    static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return fetched;
}

/// A context of this thread: making one costs more than a digest.
EVP_MD_CTX* context() noexcept
{
    struct free_context {
        void operator()(EVP_MD_CTX* of) const noexcept { EVP_MD_CTX_free(of); }
    };
    thread_local const std::unique_ptr<EVP_MD_CTX, free_context> of_thread(EVP_MD_CTX_new());
    return of_thread.get();
}

/// Codes of one list that are kept and sorted as they are; more are read again and again instead.
constexpr std::size_t few = 256;

/// Two digits for each byte.
constexpr auto hex_digits = [] {
    std::array<std::array<char, 2>, 256> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = {"0123456789abcdef"[i >> 4], "0123456789abcdef"[i & 15]};
    return all;
}();

/// Four digits of each code behind a comma, of the first one behind `mark`: so many characters for
/// each. Written in as few pieces as they take, since one character after the other costs more than
/// the digest of what they make.
constexpr std::size_t code_width = 5;

void write_codes(char* to, char mark, std::span<const std::uint16_t> codes) noexcept
{
    for (const auto code : codes) {
        *to = mark;
        std::memcpy(to + 1, hex_digits[code >> 8].data(), 2);
        std::memcpy(to + 3, hex_digits[code & 0xff].data(), 2);
        mark = ',';
        to += code_width;
    }
}

/// Characters into the caller's room, as far as it goes.
class room_sink {
public:
    explicit room_sink(std::span<char> room) noexcept : room_(room) {}

    void put(std::span<const char> text) noexcept
    {
        for (const char c : text) {
            if (size_ < room_.size()) room_[size_] = c;
            ++size_;
        }
    }
    void put(char mark, std::span<const std::uint16_t> codes) noexcept
    {
        for (const auto& code : codes) {
            std::array<char, code_width> text;
            write_codes(text.data(), std::exchange(mark, ','), std::span(&code, 1));
            put(text);
        }
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    std::span<char> room_;
    std::size_t     size_ = 0;
};

/// Characters into SHA-256, by the page: a call for each would cost more than the digest. The first
/// one is the mark of the first code and is left out.
class digest_sink {
public:
    /// At most `few` codes.
    void put(char mark, std::span<const std::uint16_t> codes) noexcept
    {
        if (page_.size() - size_ < codes.size() * code_width) flush();
        write_codes(page_.data() + size_, mark, codes);
        size_ += codes.size() * code_width;
    }

    /// Writes the first twelve digits; zeros where nothing was put.
    void finish(std::span<char, 12> out) noexcept
    {
        std::ranges::fill(out, '0');
        if (size_ == 0) return;
        std::array<unsigned char, 32> digest;
        flush();
        must(EVP_DigestFinal_ex(context_, digest.data(), nullptr));
        for (std::size_t i = 0; i < 6; ++i)
            std::memcpy(out.data() + 2 * i, hex_digits[digest[i]].data(), 2);
    }

private:
    [[gnu::noinline]] void flush() noexcept
    {
        const std::size_t mark = context_ == nullptr ? 1 : 0;
        if (context_ == nullptr) {
            context_ = context();
            must(EVP_DigestInit_ex2(context_, sha256(), nullptr));
        }
        must(EVP_DigestUpdate(context_, page_.data() + mark, size_ - mark));
        size_ = 0;
    }

    std::array<char, few * code_width> page_;
    std::size_t                        size_    = 0;
    EVP_MD_CTX*                        context_ = nullptr;  // null until the digest begins
};

/// GREASE (RFC 8701): two equal bytes that end in 0xa.
constexpr bool is_grease(std::uint16_t code) noexcept
{
    return (code & 0x0f0f) == 0x0a0a && code >> 8 == (code & 0xff);
}

constexpr std::uint16_t server_name = 0x0000, alpn = 0x0010;

/// How one of the forms is built.
struct form {
    bool as_sent        = false;
    bool without_guests = false;  // extensions that come and go

    [[nodiscard]] bool counts(std::uint16_t extension) const noexcept
    {
        if (is_grease(extension)) return false;
        return !without_guests ||
               (extension != 0x15 && extension != 0x23 && extension != 0x29 && extension != 0x2a);
    }
    /// Of those that count.
    [[nodiscard]] bool lists(std::uint16_t extension) const noexcept
    {
        return as_sent || (extension != server_name && extension != alpn);
    }
};

/// The codes that `each` hands to its argument; the first of them are kept here.
template <class Each>
class picked {
public:
    explicit picked(const Each& each) noexcept : each_(each)
    {
        each_([&](std::uint16_t code) {
            if (count_ < few) kept_[count_] = code;
            ++count_;
        });
    }

    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    template <class Sink>
    void put_as_sent(Sink& to) const noexcept
    {
        if (count_ <= few) to.put('_', std::span(kept_).first(count_));
        else each_([&, mark = '_'](std::uint16_t code) mutable { put_one(to, mark, code); });
    }

    template <class Sink>
    void put_in_order(Sink& to) const noexcept
    {
        if (count_ > few) return put_many_in_order(to);
        std::array<std::uint16_t, few> sorted;
        const auto                     all = std::span(sorted).first(count_);
        std::copy_n(kept_.begin(), count_, all.begin());
        std::sort(all.begin(), all.end());
        to.put('_', all);
    }

private:
    template <class Sink>
    static void put_one(Sink& to, char& mark, std::uint16_t code) noexcept
    {
        to.put(std::exchange(mark, ','), std::span(&code, 1));
    }

    /// A sixteenth of all codes at a time, which needs no room for them.
    template <class Sink>
    void put_many_in_order(Sink& to) const noexcept
    {
        char                            mark = '_';
        std::array<std::uint16_t, 4096> times;
        for (unsigned part = 0; part < 16; ++part) {
            times.fill(0);
            each_([&](std::uint16_t code) {
                if (code >> 12 == part) ++times[code & 0xfffU];
            });
            for (unsigned low = 0; low < times.size(); ++low)
                for (; times[low] > 0; --times[low])
                    put_one(to, mark, static_cast<std::uint16_t>(part << 12 | low));
        }
    }

    const Each&                    each_;
    std::array<std::uint16_t, few> kept_;
    std::size_t                    count_ = 0;
};

template <class Sink, class Each>
void put_list(Sink& to, const picked<Each>& list, bool as_sent) noexcept
{
    if (as_sent) list.put_as_sent(to);
    else list.put_in_order(to);
}

/// The codes of a list without GREASE.
auto without_grease(const code_list& list) noexcept
{
    return [&list](auto&& visit) {
        for (std::size_t i = 0; i < list.size(); ++i)
            if (!is_grease(list[i])) visit(list[i]);
    };
}

std::string_view digits_of_version(std::uint16_t version) noexcept
{
    struct known {
        std::uint16_t    version;
        std::string_view digits;
    };
    static constexpr std::array<known, 9> all   = {{{0x0304, "13"},
                                                    {0x0303, "12"},
                                                    {0x0302, "11"},
                                                    {0x0301, "10"},
                                                    {0x0300, "s3"},
                                                    {0x0002, "s2"},
                                                    {0xfeff, "d1"},
                                                    {0xfefd, "d2"},
                                                    {0xfefc, "d3"}}};
    const auto* const                     found = std::ranges::find(all, version, &known::version);
    return found == all.end() ? "00" : found->digits;
}

/// The newest of the extension, if it is there; it may name none. DTLS counts downwards.
std::uint16_t version_of(const client_hello& of) noexcept
{
    if (!of.supported_versions) return of.legacy_version;
    const auto                   offered = without_grease(*of.supported_versions);
    const bool                   down    = of.transport == hello_transport::dtls;
    std::optional<std::uint16_t> newest;
    offered([&](std::uint16_t code) {
        if (!newest || (down ? code < *newest : code > *newest)) newest = code;
    });
    return newest.value_or(0);
}

/// First and last character of the first protocol; if one is neither letter nor digit, of its bytes
/// in hexadecimal.
std::array<char, 2> protocol_of(const client_hello& of) noexcept
{
    const auto name = of.first_protocol.value_or(std::string_view());
    if (name.empty()) return {'0', '0'};
    const auto plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (plain(name.front()) && plain(name.back())) return {name.front(), name.back()};
    const auto first = static_cast<unsigned char>(name.front());
    const auto last  = static_cast<unsigned char>(name.back());
    return {"0123456789abcdef"[first >> 4], "0123456789abcdef"[last & 15]};
}

/// `t13d1516h2`
std::array<char, 10> outline_of(const client_hello& of, std::size_t ciphers,
                                std::size_t extensions) noexcept
{
    const auto version  = digits_of_version(version_of(of));
    const auto protocol = protocol_of(of);
    const auto digit    = [](std::size_t number) { return static_cast<char>('0' + number % 10); };
    ciphers             = std::min<std::size_t>(ciphers, 99);
    extensions          = std::min<std::size_t>(extensions, 99);
    return {"tqd"[static_cast<int>(of.transport)],
            version[0],
            version[1],
            of.has_server_name ? 'd' : 'i',
            digit(ciphers / 10),
            digit(ciphers),
            digit(extensions / 10),
            digit(extensions),
            protocol[0],
            protocol[1]};
}

/// Hands `emit` the outline, and then two callables that put the lists into a sink: the ciphers,
/// and the extensions with the signature algorithms as they were sent behind them.
template <class Emit>
void with_parts(const client_hello& of, const form& how, const Emit& emit) noexcept
{
    std::size_t  counted     = 0;
    const auto   all_ciphers = without_grease(of.ciphers);
    const picked ciphers(all_ciphers);
    const auto   all_extensions = [&](auto&& visit) {
        counted = 0;
        of.for_each_extension([&](std::uint16_t type) {
            const bool counts = how.counts(type);
            counted += counts;
            if (counts && how.lists(type)) visit(type);
        });
    };
    const picked extensions(all_extensions);
    const auto   signed_by      = of.signature_algorithms.value_or(code_list());
    const auto   all_signatures = without_grease(signed_by);
    const picked signatures(all_signatures);
    emit(
        outline_of(of, ciphers.count(), counted),
        [&](auto& to) { put_list(to, ciphers, how.as_sent); },
        [&](auto& to) {
            put_list(to, extensions, how.as_sent);
            put_list(to, signatures, true);
        });
}

std::size_t raw(const client_hello& of, const form& how, std::span<char> room) noexcept
{
    room_sink text(room);
    with_parts(of, how, [&](const auto& outline, const auto& ciphers, const auto& extensions) {
        const auto put = [&](const auto& list) {
            const auto before = text.size();
            list(text);
            if (text.size() == before) text.put(std::array{'_'});
        };
        text.put(outline);
        put(ciphers);
        put(extensions);
    });
    return text.size();
}

}  // namespace

struct detail::fingerprint_maker {
    static tls_fingerprint make(const client_hello& of, const form& how) noexcept
    {
        tls_fingerprint made;
        const std::span text(made.text_);
        with_parts(of, how, [&](const auto& outline, const auto& ciphers, const auto& extensions) {
            std::ranges::copy(outline, text.begin());
            text[10] = text[23] = '_';
            digest_sink first, second;
            ciphers(first);
            first.finish(text.subspan<11, 12>());
            extensions(second);
            second.finish(text.subspan<24, 12>());
        });
        return made;
    }
};
using maker = detail::fingerprint_maker;

tls_fingerprint ja4(const client_hello& of) noexcept { return maker::make(of, {}); }

tls_fingerprint ja4_o(const client_hello& of) noexcept
{
    return maker::make(of, {.as_sent = true});
}

tls_fingerprint stable_key(const client_hello& of) noexcept
{
    return maker::make(of, {.without_guests = true});
}

std::size_t ja4_r(const client_hello& of, std::span<char> room) noexcept
{
    return raw(of, {}, room);
}

std::size_t ja4_ro(const client_hello& of, std::span<char> room) noexcept
{
    return raw(of, {.as_sent = true}, room);
}

}  // namespace weir
