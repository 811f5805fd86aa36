// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/missing_key.hpp"

#include <chrono>

#include "catch.hpp"
#include "weir/extract/client.hpp"
#include "weir/extract/header.hpp"

using weir::absence;
using weir::client;
using weir::field;
using weir::key_step;
using weir::missing_key;
using weir::step_for;

TEST_CASE("O12: a request without a value passes uncounted or is rejected or counted as chosen")
{
    const weir::header api_key("X-Api-Key");
    const auto         ask = [&](const char* value) {
        const weir::header_line lines[] = {{"X-Api-Key", value}};
        return api_key(weir::request(lines, {}));
    };
    for (const auto* value : {"", " "}) {
        CHECK(step_for(ask(value), missing_key::pass) == key_step::pass);
        CHECK(step_for(ask(value), missing_key::reject) == key_step::reject);
        CHECK(step_for(ask(value), missing_key::shared_bucket) == key_step::count);
    }
    for (const auto chosen : {missing_key::pass, missing_key::reject, missing_key::shared_bucket})
        CHECK(step_for(ask("k"), chosen) == key_step::count);
}

TEST_CASE("a value that the application may take but we do not is rejected whatever is chosen")
{
    for (const auto why : {absence::ambiguous, absence::malformed, absence::too_long})
        for (const auto chosen :
             {missing_key::pass, missing_key::reject, missing_key::shared_bucket}) {
            INFO(name(why));
            CHECK(step_for(field(why), chosen) == key_step::reject);
        }
}

TEST_CASE("a client without an address takes the step that was chosen")
{
    CHECK(step_for(client(), missing_key::pass) == key_step::pass);
    CHECK(step_for(client(), missing_key::reject) == key_step::reject);
    CHECK(step_for(client(), missing_key::shared_bucket) == key_step::count);
    CHECK(step_for(client(weir::address()), missing_key::reject) == key_step::count);
}

TEST_CASE("the shared bucket is one key and no value has it")
{
    const weir::digest digest({1, 2}, 1, "api", std::chrono::minutes(1));
    CHECK(digest(field()) == digest(field(absence::ambiguous)));
    CHECK(digest(field()) != digest(field("missing", 10)));
    CHECK(digest(field()) != digest(field(std::string_view("\0", 1), 10)));
}
