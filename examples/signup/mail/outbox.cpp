// SPDX-License-Identifier: BSL-1.0

#include "mail/transport.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace signup {

namespace {

/// A descriptor that is closed in the end; its failures are told as std::runtime_error.
class file {
public:
    file(const std::string& path, int flags)
        : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0600))
    {
        if (number_ < 0) fail("open");
    }
    ~file() { ::close(number_); }
    file(const file&)            = delete;
    file& operator=(const file&) = delete;

    void write(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const auto count = ::write(number_, bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) fail("write");
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
    }
    void sync()
    {
        if (::fsync(number_) != 0) fail("sync");
    }

private:
    [[noreturn]] void fail(const char* doing) const
    {
        throw std::runtime_error(std::string("cannot ") + doing + ' ' + path_ + ": " +
                                 std::strerror(errno));
    }

    std::string path_;
    int         number_;
};

class outbox final : public transport {
public:
    explicit outbox(std::string folder) : folder_(std::move(folder))
    {
        std::filesystem::create_directories(folder_);
        file(folder_, O_RDONLY | O_DIRECTORY);
    }

    passage send(const message& one) override
    {
        const auto path = folder_ + '/' + one.id + ".eml";
        try {
            file made(path + ".part", O_WRONLY | O_CREAT | O_TRUNC);
            made.write(one.text);
            made.sync();
            std::filesystem::rename(path + ".part", path);
            file(folder_, O_RDONLY | O_DIRECTORY).sync();  // the name is on the disk too
        } catch (const std::exception& failed) {
            return {.how = passage::end::not_gone, .why = failed.what()};
        }
        return {};
    }

private:
    std::string folder_;
};

}  // namespace

std::unique_ptr<transport> outbox_transport(const settings& chosen)
{
    return std::make_unique<outbox>(chosen.outbox);
}

std::unique_ptr<transport> make_transport(const settings& chosen)
{
    return chosen.smtp_url.empty() ? outbox_transport(chosen) : smtp_transport(chosen);
}

}  // namespace signup
