// SPDX-License-Identifier: BSL-1.0
#pragma once

// What stands in a mail. Nothing that an applicant wrote but his address: a form that sends
// strangers' words to strangers' addresses is a relay for spam.

#include "mail/links.hpp"
#include "storage/records.hpp"

#include "weir/time.hpp"

#include <string>

namespace signup {

struct message {
    std::string id   = {};
    std::string from = {};
    std::string to   = {};
    std::string text = {};  ///< Header and body, lines ended by CR LF (RFC 5322).
};

/// Of what was claimed. The same mail has the same Message-ID each time that it is sent.
message write_message(const mail& of, const links& with, const std::string& from, weir::instant at);

}  // namespace signup
