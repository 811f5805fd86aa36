// SPDX-License-Identifier: BSL-1.0

#include "secret.hpp"

#include "random_text.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

namespace signin {

namespace {

[[noreturn]] void fail(const std::string& what)
{
    throw std::invalid_argument("SIGNIN_FOLDER: " + what + ": " + std::strerror(errno));
}

}  // namespace

std::string kept_secret(const std::string& folder)
{
    const auto path = folder + "/secret";
    if (::access(path.c_str(), F_OK) != 0) {
        const auto made   = path + "." + std::to_string(::getpid());
        const auto text   = random_text(32);
        const int  number = ::open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (number < 0) fail("cannot make " + made);
        const auto written = ::write(number, text.data(), text.size());
        ::fsync(number);
        ::close(number);
        if (written != static_cast<ssize_t>(text.size())) fail("cannot write " + made);
        // A link is there with all of it, and the first process wins.
        const bool linked = ::link(made.c_str(), path.c_str()) == 0 || errno == EEXIST;
        ::unlink(made.c_str());
        if (!linked) fail("cannot make " + path);
    }
    std::string   secret;
    std::ifstream file(path);
    if (!std::getline(file, secret) || secret.size() < 32) fail("no secret is in " + path);
    return secret;
}

}  // namespace signin
