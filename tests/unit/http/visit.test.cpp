// SPDX-License-Identifier: BSL-1.0

#include "weir/http/visit.hpp"

#include "catch.hpp"

#include <memory>
#include <utility>

namespace {

auto slots()
{
    return std::make_shared<weir::inflight>("slots", weir::inflight_options{.in_total = 9});
}

}  // namespace

TEST_CASE("a passage gives all its places back when it goes, the ninth too", "[http][passage]")
{
    const auto in = slots();
    {
        weir::http::passage through;
        for (int i = 0; i < 9; ++i) through.keep(in, in->enter("who"));
        CHECK(through.places() == 9);
        CHECK(in->held() == 9);
    }
    CHECK(in->held() == 0);
}

TEST_CASE("a passage that moves takes its places along", "[http][passage]")
{
    const auto          in = slots();
    weir::http::passage first;
    for (int i = 0; i < 6; ++i) first.keep(in, in->enter("who"));
    weir::http::passage second(std::move(first));
    CHECK(in->held() == 6);
    CHECK(second.places() == 6);

    weir::http::passage third;
    third.keep(in, in->enter("who"));
    third = std::move(second);
    CHECK(in->held() == 6);
    third.leave();
    CHECK(in->held() == 0);
    CHECK(third.places() == 0);
}

TEST_CASE("a passage keeps alive what its places lie in", "[http][passage]")
{
    auto                                in   = slots();
    const std::weak_ptr<weir::inflight> seen = in;
    weir::http::passage                 through;
    through.keep(in, in->enter("who"));
    in.reset();
    CHECK_FALSE(seen.expired());
    through.leave();
    CHECK(seen.expired());
}
