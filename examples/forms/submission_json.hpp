// SPDX-License-Identifier: BSL-1.0
#pragma once

// A submission as the operator sees it: in a page of the management API, and as a delivery.

#include "body/fields.hpp"
#include "storage/records.hpp"

#include "weir/http/refusal.hpp"

#include <string>

namespace forms {

/// One JSON object, without a line feed in it.
inline void append_submission(std::string& to, const submission& one)
{
    to += R"({"submission_id":)";
    weir::append_json_string(to, one.id);
    to += R"(,"endpoint_id":)";
    weir::append_json_string(to, one.endpoint_id);
    to += R"(,"received_at":)";
    weir::append_json_string(to, one.received_at);
    to.append(R"(,"field_count":)").append(std::to_string(one.field_count));
    to.append(R"(,"fields":)").append(as_object(one.fields)) += '}';
}

}  // namespace forms
