// SPDX-License-Identifier: BSL-1.0

#include "mail.hpp"

#include "random_text.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace signin {

namespace {

std::runtime_error failed(const std::string& what)
{
    return std::runtime_error(what + ": " + std::strerror(errno));
}

/// RFC 5322, 3.3, in UTC.
std::string date_now()
{
    const auto now = std::time(nullptr);
    std::tm    parts{};
    char       text[64] = {};
    ::gmtime_r(&now, &parts);
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S +0000", &parts);
    return text;
}

std::size_t read_on(char* into, std::size_t size, std::size_t count, void* from)
{
    auto&      rest = *static_cast<std::string_view*>(from);
    const auto most = std::min(rest.size(), size * count);
    rest.copy(into, most);
    rest.remove_prefix(most);
    return most;
}

}  // namespace

mail::mail(const settings& chosen, const accounts& known) : chosen_(chosen), known_(known)
{
    if (!chosen.smtp_url.empty()) curl_global_init(CURL_GLOBAL_DEFAULT);
    else if (::mkdir(chosen.outbox.c_str(), 0700) != 0 && errno != EEXIST)
        throw std::invalid_argument(failed("SIGNIN_OUTBOX: cannot make " + chosen.outbox).what());
    worker_ = std::thread([this] { work(); });
}

mail::~mail()
{
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_one();
    worker_.join();
}

void mail::post(std::string user, std::string code)
{
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_waiting) {
        std::fprintf(stderr, "weir-signin: too many mails wait, one was dropped\n");
        return;
    }
    waiting_.push_back({std::move(user), std::move(code), clock::now() + pause});
    changed_.notify_one();
}

void mail::work()
{
    auto             give_up = clock::time_point::max();
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return over_ || !waiting_.empty(); });
        if (over_) give_up = std::min(give_up, clock::now() + std::chrono::seconds(10));
        if (waiting_.empty() || clock::now() >= give_up) return;
        if (const auto due = waiting_.front().due; !over_ && clock::now() < due) {
            changed_.wait_until(lock, due, [this] { return over_; });
            continue;
        }
        const auto next = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        deliver(next);
        lock.lock();
    }
}

void mail::deliver(const letter& one)
{
    if (!known_.contains(one.user)) return;
    try {
        const auto id   = random_text(16);
        const auto text = text_of(one, id);
        if (chosen_.smtp_url.empty()) file(text, id);
        else send(one.user, text);
    } catch (const std::exception& wrong) {  // without the address: logs are read by many
        std::fprintf(stderr, "weir-signin: a mail was not sent: %s\n", wrong.what());
    }
}

/// Every line is short ASCII: addresses are, see `can_be_account`.
std::string mail::text_of(const letter& one, const std::string& id) const
{
    const auto  minutes = std::chrono::ceil<std::chrono::minutes>(chosen_.code_lifetime).count();
    std::string text;
    text.append("From: ").append(chosen_.mail_from).append("\r\nTo: ").append(one.user);
    text.append("\r\nDate: ").append(date_now()).append("\r\nMessage-ID: <").append(id);
    text.append("@weir-signin>\r\nSubject: Your sign-in code\r\nMIME-Version: 1.0\r\n"
                "Content-Type: text/plain; charset=us-ascii\r\nAuto-Submitted: auto-generated\r\n"
                "\r\nYour code is ");
    text.append(one.code).append("\r\n\r\nIt is good for ").append(std::to_string(minutes));
    return text.append(" minutes and once. Did you not ask for it? Then do nothing.\r\n");
}

void mail::file(const std::string& text, const std::string& id) const
{
    const auto path   = chosen_.outbox + "/" + std::to_string(std::time(nullptr)) + "-" + id;
    const auto part   = path + ".part";
    const int  number = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (number < 0) throw failed("cannot make a file in the outbox");
    const auto written = ::write(number, text.data(), text.size());
    ::close(number);
    if (written != static_cast<ssize_t>(text.size()) ||
        ::rename(part.c_str(), (path + ".eml").c_str()) != 0)
        throw failed("cannot write to the outbox");
}

void mail::send(const std::string& to, const std::string& text) const
{
    const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>         trip(curl_easy_init(),
                                                                           &curl_easy_cleanup);
    const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> receivers(
        curl_slist_append(nullptr, to.c_str()), &curl_slist_free_all);
    if (!trip || !receivers) throw std::runtime_error("no memory");

    std::string_view rest = text;
    curl_easy_setopt(trip.get(), CURLOPT_URL, chosen_.smtp_url.c_str());
    curl_easy_setopt(trip.get(), CURLOPT_USE_SSL,
                     static_cast<long>(chosen_.smtp_tls ? CURLUSESSL_ALL : CURLUSESSL_NONE));
    curl_easy_setopt(trip.get(), CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(trip.get(), CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(trip.get(), CURLOPT_MAIL_FROM, chosen_.mail_from.c_str());
    curl_easy_setopt(trip.get(), CURLOPT_MAIL_RCPT, receivers.get());
    curl_easy_setopt(trip.get(), CURLOPT_READFUNCTION, &read_on);
    curl_easy_setopt(trip.get(), CURLOPT_READDATA, &rest);
    curl_easy_setopt(trip.get(), CURLOPT_UPLOAD, 1L);
    if (const auto code = curl_easy_perform(trip.get()); code != CURLE_OK)
        throw std::runtime_error(curl_easy_strerror(code));
}

}  // namespace signin
