// SPDX-License-Identifier: BSL-1.0

#include "weir/remote/digest.hpp"

#include <openssl/evp.h>

#include <cstdlib>
#include <string>
#include <utility>

namespace weir::remote {
namespace {

void must(int done) noexcept
{
    if (done != 1) std::abort();
}

/// SHA-256 of the default provider, looked up once: the lookup costs more than a hash.
const EVP_MD* sha256() noexcept
{
    static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return fetched;
}

struct free_context {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

/// SHA-256 under way, fed as the layout of keys wants it.
class running_hash {
public:
    running_hash() noexcept : context_(EVP_MD_CTX_new()) { begin(); }

    void begin() noexcept { must(EVP_DigestInit_ex2(context_.get(), sha256(), nullptr)); }
    void continue_from(const running_hash& other) noexcept
    {
        must(EVP_MD_CTX_copy_ex(context_.get(), other.context_.get()));
    }

    running_hash& feed(std::string_view bytes) noexcept
    {
        must(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
        return *this;
    }
    running_hash& feed(std::uint64_t word) noexcept
    {
        char bytes[8];
        for (auto& byte : bytes) byte = static_cast<char>(word & 0xff), word >>= 8;
        return feed(std::string_view(bytes, sizeof bytes));
    }
    running_hash& feed(const hash_bytes& bytes) noexcept
    {
        return feed(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }

    [[nodiscard]] hash_bytes finish() noexcept
    {
        hash_bytes out;
        must(EVP_DigestFinal_ex(context_.get(), out.data(), nullptr));
        return out;
    }

private:
    std::unique_ptr<EVP_MD_CTX, free_context> context_;
};

/// One block of the secret, as RFC 2104 pads it, each byte combined with `with`.
std::string pad(std::string_view secret, char with)
{
    constexpr std::size_t block = 64;
    std::string           bytes(secret);
    if (secret.size() > block) {
        const auto shorter = running_hash().feed(secret).finish();
        bytes.assign(shorter.begin(), shorter.end());
    }
    bytes.resize(block);
    for (auto& byte : bytes) byte = static_cast<char>(byte ^ with);
    return bytes;
}

/// A context of this thread to copy a begun hash into: making one costs more than the hash.
running_hash& scratch() noexcept
{
    thread_local running_hash of_thread;
    return of_thread;
}

std::uint64_t first_word(const unsigned char* bytes) noexcept
{
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word = word << 8 | bytes[i];
    return word;
}

/// The inner hash, which takes the message, and the outer one, which takes the inner one's result.
struct pads {
    explicit pads(std::string_view secret) : keyed(!secret.empty())
    {
        if (!keyed) return;
        inner.feed(pad(secret, 0x36));
        outer.feed(pad(secret, 0x5c));
    }

    /// The end of a hash that was continued from `inner`.
    [[nodiscard]] hash_bytes finish(running_hash& hash) const noexcept
    {
        const auto bytes = hash.finish();
        if (!keyed) return bytes;
        hash.continue_from(outer);
        return hash.feed(bytes).finish();
    }

    running_hash inner;
    running_hash outer;
    bool         keyed;
};

}  // namespace

struct digest::begun : pads {
    using pads::pads;
};

hash_bytes hash(std::string_view secret, std::string_view bytes) noexcept
{
    const pads begun(secret);
    auto&      hash = scratch();
    hash.continue_from(begun.inner);
    hash.feed(bytes);
    return begun.finish(hash);
}

std::string hex(const hash_bytes& hash)
{
    std::string made;
    for (const unsigned byte : hash) {
        made += "0123456789abcdef"[byte >> 4];
        made += "0123456789abcdef"[byte & 15];
    }
    return made;
}

digest::digest(std::string_view secret, std::uint8_t policy_id, std::string_view name,
               duration window)
{
    auto made = std::make_unique<begun>(secret);
    feed_limit(made->inner, policy_id, name, window);
    begun_ = std::move(made);
}

digest::~digest()                            = default;
digest::digest(digest&&) noexcept            = default;
digest& digest::operator=(digest&&) noexcept = default;

key digest::operator()(const subject& who) const noexcept
{
    auto& hash = scratch();
    hash.continue_from(begun_->inner);
    feed_subject(hash, who);
    const auto bytes = begun_->finish(hash);
    return {first_word(bytes.data()), first_word(bytes.data() + 8)};
}

}  // namespace weir::remote
