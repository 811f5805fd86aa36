// SPDX-License-Identifier: BSL-1.0

#include "weir/extract/field.hpp"

#include <memory>
#include <string>

#include "catch.hpp"

using weir::absence;
using weir::field;

TEST_CASE("an empty value is none and all that are none are one subject")
{
    CHECK_FALSE(field());
    CHECK_FALSE(field("", 10));
    CHECK(field("", 10).why() == absence::missing);
    CHECK(field().bytes().empty());
    CHECK(field(absence::ambiguous).bytes() == field(absence::malformed).bytes());
    CHECK(field("k", 10));
    CHECK(field("k", 10).why() == std::nullopt);
}

TEST_CASE("a value borrows its bytes and is too long by one byte")
{
    const std::string value(10, 'k');
    CHECK(field(value, 10).bytes().data() == value.data());
    CHECK(field(value, 9).why() == absence::too_long);
    CHECK(field(value, 9).bytes().empty());
}

TEST_CASE("a decoded value outlives the field that it was copied from")
{
    auto one = std::make_unique<field>();
    for (const char c : std::string("a\0b", 3)) one->append(c);
    const field copy = *one;
    field       assigned(absence::ambiguous);
    assigned = *one;
    one.reset();
    CHECK(copy.bytes() == std::string_view("a\0b", 3));
    CHECK(assigned.bytes() == copy.bytes());
    CHECK(assigned);
    assigned = field("k", 1);
    CHECK(assigned.bytes() == "k");
}

TEST_CASE("a decoded value has room for 1024 bytes and none for one more")
{
    field full;
    for (std::size_t i = 0; i < field::room; ++i) full.append('x');
    CHECK(full.bytes() == std::string(1024, 'x'));
    full.append('y');
    CHECK(full.why() == absence::too_long);
    CHECK(full.bytes().empty());
    full.append('z');
    CHECK(full.why() == absence::too_long);
}

TEST_CASE("the reasons why there is no value have four names")
{
    CHECK(name(absence::missing) == "missing");
    CHECK(name(absence::ambiguous) == "ambiguous");
    CHECK(name(absence::malformed) == "malformed");
    CHECK(name(absence::too_long) == "too_long");
}
