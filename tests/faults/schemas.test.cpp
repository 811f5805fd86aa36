// SPDX-License-Identifier: BSL-1.0

// X9: the schema is another one when a connection is made anew.

#include <string>
#include <thread>

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

/// A store whose schema is spoilt and mended again while a crowd asks.
void spoil(const std::string& of, const std::string& name, const std::string& spoils,
           const std::string& mends, bool makes = true, bool lasts = true)
{
    INFO(of);
    scratch::session by(cluster().conninfo());
    proxy            between_us(cluster().folder());
    by.must(scratch::text_for(name));
    auto options        = hasty(between_us.conninfo() + " application_name=weir_" + name, name);
    options.make_schema = makes;
    weir::postgres::store counters(options);
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    const auto before = descriptors();
    crowd      asks(all);
    std::this_thread::sleep_for(100ms);
    by.must(spoils);
    by.must(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weir_" +
        name + "'");
    const auto begun = clock::now();
    std::this_thread::sleep_for(span() / 2);
    const auto mended = clock::now();
    if (lasts) CHECK(heard_so_far() == begin_of_outage);
    if (!mends.empty()) by.must(mends);
    CHECK(comes_back(all.closed));
    CHECK(within(10s, [&] { return all.closed.admit("new").basis == basis::counted; }));
    const auto back = clock::now();
    std::this_thread::sleep_for(200ms);
    const auto told = asks.stop();
    judge("X9 " + of, told, lasts ? 1 : 2);
    std::printf("%-28s back %.0f ms after it was mended\n", "", ms(recovered(told, mended)));
    CHECK(back - mended < 2s);
    if (lasts) {
        CHECK(share_authoritative(between(told, begun + 300ms, mended)) < 0.01);
        judge_outage(all.closed);
    }
    judge_connects(between_us.accepted());
    CHECK(within(5s, [&] { return std::abs(descriptors() - before) <= 2; }));
    by.must("DROP SCHEMA " + name + " CASCADE");
}

}  // namespace

TEST_CASE(
    "a schema that is missing at a reconnect is made anew, or waited for where it may not be (X9)",
    "[faults][X9]")
{
    spoil("schema gone, made anew", "fgone", "DROP SCHEMA fgone CASCADE", "", true, false);
    spoil("schema gone, waited for", "fwaited", "DROP SCHEMA fwaited CASCADE",
          scratch::text_for("fwaited"), false);
}

TEST_CASE(
    "a schema that is older or newer at a reconnect is left alone until it is this one again (X9)",
    "[faults][X9]")
{
    const auto version = [](const std::string& schema, const std::string& to) {
        return "UPDATE " + schema + ".meta SET value = '" + to + "' WHERE name = 'version'";
    };
    spoil("schema newer", "fnewer", version("fnewer", "2"), version("fnewer", "1"));
    spoil("schema older", "folder_", version("folder_", "0"), version("folder_", "1"));
}

TEST_CASE("a schema that lost a function is an outage without a storm of connections (X9)",
          "[faults][X9]")
{
    spoil("function gone", "flost",
          "DROP FUNCTION flost.ask_fixed_window(uuid[], bigint[]);"
          "DROP FUNCTION flost.ask_fixed_window(uuid, bigint[])",
          scratch::text_for("flost"));
}

TEST_CASE("a schema of another version is refused at the start, and says which (X9)",
          "[faults][X9]")
{
    scratch::session by(cluster().conninfo());
    by.must(scratch::text_for("fother"));
    for (const std::string other : {"0", "2", "never seen"}) {
        by.must("UPDATE fother.meta SET value = $1 WHERE name = 'version'", {other});
        CHECK_THROWS_WITH(weir::postgres::store(hasty(cluster().conninfo(), "fother")),
                          Catch::Contains("has version \"" + other + "\"; this program knows 1"));
        CHECK(by.must("SELECT value FROM fother.meta WHERE name = 'version'").rows.at(0).at(0) ==
              other);
    }
    by.must("DROP SCHEMA fother CASCADE");
}
