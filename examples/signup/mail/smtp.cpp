// SPDX-License-Identifier: BSL-1.0

#include "mail/transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <curl/curl.h>

namespace signup {

namespace {

struct end_of_handle {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
struct end_of_list {
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

/// The message as libcurl takes it. Once any of it was asked for the server may have all of it.
struct source {
    std::string_view rest;
    bool             begun = false;
};

std::size_t give(char* to, std::size_t size, std::size_t count, void* from)
{
    auto&      body = *static_cast<source*>(from);
    const auto part = body.rest.substr(0, size * count);
    body.begun      = true;
    std::memcpy(to, part.data(), part.size());
    body.rest.remove_prefix(part.size());
    return part.size();
}

/// By the server's last word: 4yz is for now, 5yz for ever (RFC 5321 section 4.2.1) if it is about
/// this mail and not about us; with neither, nobody knows what became of one that was under way.
passage judge(CURLcode result, long said, const source& body)
{
    using end = passage::end;
    if (result == CURLE_OK) return {};
    auto why = std::string(curl_easy_strerror(result)) +
               ", the server's last code: " + std::to_string(said);
    const bool refused  = said >= 400 && said < 600;
    const bool about_us = said == 530 || said == 535 || said == 538;  // RFC 4954: sign in first
    const bool about_it = result == CURLE_SEND_ERROR || body.begun;
    if (said >= 500 && refused && about_it && !about_us)
        return {.how = end::never, .why = std::move(why)};
    return {.how = body.begun && !refused ? end::unknown : end::not_gone, .why = std::move(why)};
}

class smtp final : public transport {
public:
    explicit smtp(const settings& chosen)
        : url_(chosen.smtp_url), patience_(std::chrono::milliseconds(chosen.lease) / 2)
    {
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
            throw std::runtime_error("libcurl does not start");
    }

    /// A connection for each mail: at 30 an hour none would stay open between two.
    passage send(const message& one) override;

private:
    std::string               url_;
    std::chrono::milliseconds patience_;
};

passage smtp::send(const message& one)
{
    const std::unique_ptr<CURL, end_of_handle> handle(curl_easy_init());
    const auto                                 from = '<' + one.from + '>', to = '<' + one.to + '>';
    const std::unique_ptr<curl_slist, end_of_list> recipients(
        curl_slist_append(nullptr, to.c_str()));
    if (!handle || !recipients) return {.how = passage::end::not_gone, .why = "no memory"};

    source     body{.rest = one.text};
    const auto set = [&](CURLoption what, auto as) { curl_easy_setopt(handle.get(), what, as); };
    set(CURLOPT_URL, url_.c_str());
    set(CURLOPT_MAIL_FROM, from.c_str());
    set(CURLOPT_MAIL_RCPT, recipients.get());
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READFUNCTION, &give);
    set(CURLOPT_READDATA, &body);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(patience_.count()));
    // A password never goes in the clear.
    set(CURLOPT_USE_SSL, url_.find('@') == url_.npos ? long{CURLUSESSL_TRY} : long{CURLUSESSL_ALL});

    const auto result = curl_easy_perform(handle.get());
    long       said   = 0;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &said);
    return judge(result, said, body);
}

}  // namespace

std::unique_ptr<transport> smtp_transport(const settings& chosen)
{
    return std::make_unique<smtp>(chosen);
}

}  // namespace signup
