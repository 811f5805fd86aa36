// SPDX-License-Identifier: BSL-1.0
#pragma once

// Who answers what: submit.cpp the three forms, desk.cpp the operator.

#include "form.hpp"
#include "service.hpp"

#include <optional>
#include <string>

#include <httplib.h>

namespace signup {

/// `with` must outlive `server`.
void add_routes(httplib::Server& server, service& with);
void add_forms(httplib::Server& server, service& with);
void add_desk(httplib::Server& server, service& with);

/// The whole body, or none and the response says why; to be called by every POST.
std::optional<fields> read_form(const httplib::Request& from, httplib::Response& to,
                                const httplib::ContentReader& body);

void answer(httplib::Response& to, int status, const std::string& page);

}  // namespace signup
