// SPDX-License-Identifier: BSL-1.0

#include "delivery.hpp"

#include "submission_json.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <future>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace forms {

namespace {

constexpr std::int64_t most_at_once = 256;

/// An open file; throws storage_error with what the system says.
class file {
public:
    file(const std::string& path, int flags)
        : path_(path), number_(::open(path.c_str(), flags, 0600))
    {
        if (number_ < 0) fail("open");
    }
    ~file() { ::close(number_); }
    file(const file&)            = delete;
    file& operator=(const file&) = delete;

    /// Until the file is closed; waits while another process has it.
    void lock()
    {
        while (::flock(number_, LOCK_EX) != 0)
            if (errno != EINTR) fail("lock");
    }

    void write(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const auto count = ::write(number_, bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) fail("write");
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
    }

    /// A crash in the middle of a line leaves it without an end; the next must not be glued to it.
    void end_line()
    {
        char       last = '\n';
        const auto size = ::lseek(number_, 0, SEEK_END);
        if (size > 0 && ::pread(number_, &last, 1, size - 1) == 1 && last != '\n') write("\n");
    }

    void sync()
    {
        if (::fdatasync(number_) != 0) fail("sync");
    }

private:
    [[noreturn]] void fail(const char* what) const
    {
        throw storage_error(std::string("cannot ") + what + ' ' + path_ + ": " +
                            std::strerror(errno));
    }

    std::string path_;
    int         number_;
};

/// Opened for each round, so that the outbox may be moved away at any time.
constexpr int outbox_flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC;
constexpr int lock_flags   = O_RDWR | O_CREAT | O_CLOEXEC;

}  // namespace

delivery::delivery(const std::string& database, std::string outbox, worker& writer)
    : on_(database), outbox_(std::move(outbox)), lock_path_(database + "-delivery"), writer_(writer)
{
    file(lock_path_, lock_flags);
    file(outbox_, outbox_flags);
    thread_ = std::thread([this] { run(); });
}

void delivery::wake()
{
    {
        const std::lock_guard lock(mutex_);
        if (woken_) return;
        woken_ = true;
    }
    more_.notify_one();
}

void delivery::finish()
{
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    more_.notify_one();
    if (thread_.joinable()) thread_.join();
}

/// Looks once a second unasked: another process may have ended before its deliveries.
bool delivery::wait()
{
    std::unique_lock lock(mutex_);
    more_.wait_for(lock, std::chrono::seconds(1), [this] { return woken_ || over_; });
    woken_ = false;
    return !over_;
}

void delivery::run()
{
    bool goes_on = true;
    while (goes_on) {
        goes_on = wait();
        try {
            while (deliver_some()) {}
        } catch (const std::exception& failed) {
            std::fprintf(stderr, "weir-forms: deliveries wait: %s\n", failed.what());
        }
    }
}

/// False when there is nothing more to do.
bool delivery::deliver_some()
{
    file turn(lock_path_, lock_flags);
    turn.lock();
    const auto queued = undelivered(on_, most_at_once);
    if (queued.empty()) return false;

    std::string lines;
    for (const auto& each : queued) {
        append_submission(lines, each);
        lines += '\n';
    }
    file outbox(outbox_, outbox_flags);
    outbox.end_line();
    outbox.write(lines);
    outbox.sync();
    return mark(queued);
}

/// By the writer, in the same commit as the submissions that wait there.
bool delivery::mark(const std::vector<submission>& done)
{
    std::promise<bool> marked;
    const bool         added = writer_.add([&](connection& on) { mark_delivered(on, done); },
                                           [&](bool kept) { marked.set_value(kept); });
    return added && marked.get_future().get();
}

}  // namespace forms
