// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a mail leaves: to a server by SMTP, or as a file into a folder.

#include "mail/message.hpp"
#include "settings.hpp"

#include <memory>
#include <string>

namespace signup {

/// What became of a mail that was handed on.
struct passage {
    enum class end {
        gone,
        not_gone,  ///< It may go the next time.
        unknown,   ///< The server had it, and did not say whether it took it.
        never,     ///< The server does not take it, now or later.
    };

    end         how = end::gone;
    std::string why = {};
};

/// For one thread at a time. Does not take longer than half the lease of a mail.
class transport {
public:
    virtual ~transport()                     = default;
    virtual passage send(const message& one) = 0;
};

/// The one that the settings name. Throws std::runtime_error if it cannot be used.
std::unique_ptr<transport> make_transport(const settings& chosen);

/// `folder`/ID.eml, whole and on the disk, or not there: the same mail twice is one file.
std::unique_ptr<transport> outbox_transport(const settings& chosen);
std::unique_ptr<transport> smtp_transport(const settings& chosen);

}  // namespace signup
