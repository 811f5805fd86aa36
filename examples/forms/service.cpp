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

#include <sys/random.h>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace forms {

namespace asio = boost::asio;

namespace {

std::unique_ptr<storage> storage_of(const std::string& database)
{
    return names_postgres(database) ? postgres_storage(database) : sqlite_storage(database);
}

/// `add` hands a `done` to a thread on the database, or returns false.
template <class Add>
asio::awaitable<bool> handed_over(Add add)
{
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(bool)>(
        [add = std::move(add)](auto handler) mutable {
            const auto home   = asio::get_associated_executor(handler);
            const auto owned  = std::make_shared<decltype(handler)>(std::move(handler));
            const auto resume = [home, owned](bool kept) {
                asio::post(home, [owned, kept] { std::move (*owned)(kept); });
            };
            if (!add(resume)) resume(false);
        },
        asio::use_awaitable);
}

}  // namespace

service::service(const settings& from)
    : chosen(from), database(storage_of(from.database)), keeper(*database, state),
      desk(*database, state), source(from.client), limits(make_gate(from))
{
    const auto on = database->open();
    on->allow_until(records::time_point::clock::now() + database->patience());
    endpoints.refresh(*on);
}

void service::look_around()
{
    desk.add([this](records& on) { endpoints.refresh(on); }, [](bool) {});
    keeper.probe();
}

asio::awaitable<bool> kept_by(writer& whom, keeping& one)
{
    return handed_over([&whom, &one](done then) { return whom.keep(one, std::move(then)); });
}

asio::awaitable<bool> done_by(worker& whom, worker::work what)
{
    return handed_over([&whom, what = std::move(what)](done then) mutable {
        return whom.add(std::move(what), std::move(then));
    });
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
