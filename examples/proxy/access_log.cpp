// SPDX-License-Identifier: BSL-1.0

#include "access_log.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace proxy {

namespace {

constexpr std::size_t most_gathered = 32'768;

}  // namespace

log_file::log_file(const std::string& path)
    : file_(path == "stdout"
                ? ::dup(STDOUT_FILENO)
                : ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640))
{
    if (file_ < 0) throw std::runtime_error("access_log: cannot write to " + path);
}

log_file::~log_file() { ::close(file_); }

void log_file::write(std::string_view lines) const noexcept
{
    while (!lines.empty()) {
        const auto written = ::write(file_, lines.data(), lines.size());
        if (written <= 0) return;  // a full disk must not stop the service
        lines.remove_prefix(static_cast<std::size_t>(written));
    }
}

void access_log::open(std::shared_ptr<const log_file> to)
{
    flush();
    to_ = std::move(to);
}

void access_log::tell(const exchange_record& one, std::string_view time)
{
    std::array<char, 64> numbers{};
    const int length = std::snprintf(numbers.data(), numbers.size(), " %d %llu %lld.%06lld",
                                     one.status, static_cast<unsigned long long>(one.bytes),
                                     static_cast<long long>(one.micros / 1'000'000),
                                     static_cast<long long>(one.micros % 1'000'000));
    lines_.append(time).append(" ").append(one.method.substr(0, 32)).append(" ");
    lines_.append(one.location).append(numbers.data(), static_cast<std::size_t>(length));
    if (one.client != nullptr) lines_.append(" ").append(to_string(*one.client));
    lines_ += '\n';
    if (lines_.size() > most_gathered) flush();
}

void access_log::flush() noexcept
{
    if (to_ && !lines_.empty()) to_->write(lines_);
    lines_.clear();
}

}  // namespace proxy
