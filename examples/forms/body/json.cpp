// SPDX-License-Identifier: BSL-1.0

// application/json: one flat object. Texts are values; numbers, true and false are values as they
// are written; null is a field that is not there; an array of these is several fields of one name.
// Read as events, so that nesting costs nothing and duplicate names are kept in order.

#include "body/fields.hpp"

#include "weir/http/refusal.hpp"

#include <cstdint>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

namespace forms {

namespace {

using json = nlohmann::json;

[[noreturn]] void nested()
{
    throw body_problem{422, "invalid_field",
                       "A field is a text, a number, true, false, null or an array of these."};
}

/// What nlohmann's parser calls; the names are its own.
class flat_object final : public nlohmann::json_sax<json> {
public:
    std::vector<field> fields;

    bool null() override { return here(); }
    bool boolean(bool value) override { return add(value ? "true" : "false"); }
    bool number_integer(std::int64_t value) override { return add(std::to_string(value)); }
    bool number_unsigned(std::uint64_t value) override { return add(std::to_string(value)); }
    bool number_float(double, const std::string& written) override { return add(written); }
    bool string(std::string& value) override { return add(std::move(value)); }
    bool binary(json::binary_t&) override { return false; }
    bool key(std::string& name) override
    {
        name_ = std::move(name);
        return true;
    }
    bool start_object(std::size_t) override
    {
        if (begun_) nested();
        return begun_ = true;
    }
    bool end_object() override { return true; }
    bool start_array(std::size_t) override
    {
        if (in_array_) nested();
        return here() && (in_array_ = true);
    }
    bool end_array() override
    {
        in_array_ = false;
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const json::exception&) override
    {
        return false;
    }

private:
    /// A value outside of an object: the body is none.
    bool here() const noexcept { return begun_; }

    bool add(std::string value)
    {
        if (!here()) return false;
        add_field(fields, {.name = name_, .value = std::move(value)});
        return true;
    }

    std::string name_;
    bool        begun_    = false;
    bool        in_array_ = false;
};

}  // namespace

std::vector<field> read_json(std::string_view body)
{
    flat_object reading;
    if (!json::sax_parse(body, &reading))
        throw body_problem{400, "malformed_body", "The body is not a JSON object."};
    return std::move(reading.fields);
}

std::string as_pairs(const std::vector<field>& fields)
{
    std::string text = "[";
    for (const auto& [name, value] : fields) {
        text += text.size() > 1 ? ",[" : "[";
        weir::append_json_string(text, name);
        text += ',';
        weir::append_json_string(text, value);
        text += ']';
    }
    return text += ']';
}

std::string as_object(std::string_view pairs)
{
    using ordered = nlohmann::ordered_json;
    auto object   = ordered::object();
    std::map<std::string, int> seen;
    for (const auto& pair : ordered::parse(pairs)) {
        const auto name  = pair.at(0).get<std::string>();
        const auto again = ++seen[name];
        if (again == 1) object[name] = pair.at(1);
        else if (again == 2) object[name] = ordered::array({object[name], pair.at(1)});
        else object[name].push_back(pair.at(1));
    }
    return object.dump();
}

}  // namespace forms
