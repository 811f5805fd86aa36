// SPDX-License-Identifier: BSL-1.0
#pragma once

// From the bytes of a body to the fields of a form, by content type, and the rules that all fields
// keep. Every reader is linear in the body and gives up at the first wrong byte.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace forms {

struct field {
    std::string name  = {};
    std::string value = {};
};

inline constexpr std::size_t most_fields     = 100;
inline constexpr std::size_t longest_name    = 128;     // characters
inline constexpr std::size_t longest_value   = 16'384;  // characters

/// Why a body was not taken, as the client is told.
struct body_problem {
    int         status  = 400;
    std::string code    = {};
    std::string message = {};
};

/// The fields in the order of arrival. Throws body_problem: 415 for a type or a coding that is not
/// read here, 400 for bytes that are not what the type says, 422 for fields that break a rule.
std::vector<field> read_fields(std::string_view content_type, std::string_view content_encoding,
                               std::string_view body);

/// One reader for each type. They throw body_problem.
std::vector<field> read_urlencoded(std::string_view body);
std::vector<field> read_multipart(std::string_view boundary, std::string_view body);
std::vector<field> read_json(std::string_view body);

/// Keeps a field; throws as soon as there are too many.
void add_field(std::vector<field>& to, field one);

/// What is stored: a JSON array of [name, value].
std::string as_pairs(const std::vector<field>& fields);

/// What is shown, from what is stored: a JSON object in the order of the first of each name. A name
/// that came more than once has an array of its values.
std::string as_object(std::string_view pairs);

}  // namespace forms
