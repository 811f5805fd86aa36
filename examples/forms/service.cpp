// SPDX-License-Identifier: BSL-1.0

#include "service.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace forms {

namespace asio = boost::asio;

namespace {

/// Asks that arrive together share a transaction of the counters; so many can.
constexpr std::size_t most_asking = 32;

/// Before any worker opens the file, so that all of them find the tables. What people send to forms
/// is nobody's business on this host: SQLite gives the files beside it the mode of this one.
const std::string& with_tables(const std::string& path)
{
    if (const int made = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); made >= 0)
        ::close(made);
    connection on(path);
    create_tables(on);
    return path;
}

template <class Handler>
void hand_over(worker& whom, worker::work what, Handler handler)
{
    const auto home  = asio::get_associated_executor(handler);
    const auto owned = std::make_shared<Handler>(std::move(handler));
    const auto resume = [home, owned](bool kept) {
        asio::post(home, [owned, kept] { std::move (*owned)(kept); });
    };
    if (!whom.add(std::move(what), resume)) resume(false);
}

}  // namespace

service::service(const settings& from)
    : chosen(from), writer(with_tables(from.database), worker::kind::writing),
      reader(from.database, worker::kind::reading), source(from.client), limits(make_gate(from)),
      waiting(limits->may_wait() ? most_asking : 1)
{
    connection on(from.database);
    endpoints.refresh(on);
}

asio::awaitable<bool> done_by(worker& whom, worker::work what)
{
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(bool)>(
        [&whom, what = std::move(what)](auto handler) mutable {
            hand_over(whom, std::move(what), std::move(handler));
        },
        asio::use_awaitable);
}

std::string timestamp(weir::instant at)
{
    using namespace std::chrono;
    const auto millis = floor<milliseconds>(at.time_since_epoch()).count();
    const auto whole  = static_cast<std::time_t>(millis / 1000);
    std::tm    utc{};
    ::gmtime_r(&whole, &utc);
    std::array<char, 40> text{};
    const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
    std::snprintf(text.data() + length, text.size() - length, ".%03dZ",
                  static_cast<int>(millis % 1000));
    return text.data();
}

std::string new_submission_id(weir::instant at)
{
    std::array<unsigned char, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != std::ssize(bytes))
        throw std::runtime_error("no random bytes");
    auto millis = static_cast<std::uint64_t>(at.time_since_epoch().count()) / 1'000'000;
    for (std::size_t i = 6; i-- > 0; millis >>= 8) bytes[i] = static_cast<unsigned char>(millis);
    bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x70U);
    bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);

    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += "0123456789abcdef"[bytes[i] >> 4U];
        text += "0123456789abcdef"[bytes[i] & 15U];
    }
    return text;
}

}  // namespace forms
