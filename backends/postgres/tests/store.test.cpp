// SPDX-License-Identifier: BSL-1.0

#include "weir/postgres/store.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "weir/admit_all.hpp"
#include "weir/limiter.hpp"
#include "weir/testing/store_suite.hpp"

#include "catch.hpp"
#include "stores.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

std::mutex                 hearing;
std::vector<weir::warning> heard;

void hear(weir::warning of)
{
    const std::lock_guard turn(hearing);
    heard.push_back(of);
}

std::string refusal_of(const weir::postgres::store_options& options)
{
    try {
        const weir::postgres::store counters(options);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

/// All that there is in a schema, and when it was written.
std::string catalog_of(scratch::session& by, const std::string& schema)
{
    const auto seen =
        by.must("SELECT coalesce(string_agg(what, ' ' ORDER BY what), '') FROM ("
                "SELECT proname || p.xmin FROM pg_proc p WHERE pronamespace = to_regnamespace($1) "
                "UNION ALL "
                "SELECT relname || c.xmin FROM pg_class c WHERE relnamespace = to_regnamespace($1)"
                ") AS all_of (what)",
                {schema});
    return seen.rows.at(0).at(0).value();
}

}  // namespace

static_assert(weir::store_of<weir::postgres::store, weir::fixed_window>);
static_assert(weir::store_of<weir::postgres::store, weir::sliding_window>);
static_assert(weir::store_of<weir::postgres::store, weir::gcra>);
static_assert(weir::store_of<weir::postgres::store, weir::leased<weir::fixed_window>>);
static_assert(weir::answers_later<weir::postgres::store, weir::gcra>);

TEMPLATE_TEST_CASE("counters in PostgreSQL behave as every store must", "[postgres]",
                   weir::fixed_window, weir::sliding_window, weir::gcra)
{
    const scratch::schema home("suite");
    const bool            remembers = GENERATE(true, false);
    auto                  options   = scratch::in(home.name());
    if (!remembers) options.memo_longest = {};
    weir::postgres::store counters(options);
    int                   claims = 0;
    weir::testing::store_suite<TestType>(counters, [&](bool held, std::string_view claim) {
        ++claims;
        INFO(claim << (remembers ? ", with a memory" : ", without a memory"));
        CHECK(held);
    });
    CHECK(claims > 20);
}

TEST_CASE("options out of range are told by name, with what is allowed", "[postgres]")
{
    using weir::postgres::store_options;
    const auto said = [](auto&& change) {
        auto options = scratch::in("weir");
        change(options);
        CHECK_THROWS_AS(weir::postgres::store(options), std::invalid_argument);
        return refusal_of(options);
    };
    const auto where = Contains("weir::postgres::store: ");
    CHECK_THAT(said([](auto& o) { o.deadline = 0s; }),
               where && Contains("deadline must be positive"));
    CHECK_THAT(said([](auto& o) { o.patience = -1s; }),
               where && Contains("patience must be positive"));
    CHECK_THAT(said([](auto& o) { o.connections = 0; }),
               where && Contains("connections is 0; 1 to 64 are allowed"));
    CHECK_THAT(said([](auto& o) { o.connections = 65; }),
               where && Contains("connections is 65; 1 to 64 are allowed"));
    CHECK_THAT(said([](auto& o) { o.waiting = 0; }),
               where && Contains("waiting must be at least 1"));
    CHECK_THAT(said([](auto& o) { o.memo_longest = -1ns; }),
               where && Contains("memo_longest") && Contains("must not be negative"));
    CHECK_THAT(said([](auto& o) { o.keep = -1ns; }),
               where && Contains("keep") && Contains("must not be negative"));
    for (const std::string name :
         {"", "Weir", "1weir", "we ir", "we\"ir", "we.ir", "weir;--", "wéir"})
        CHECK_THAT(said([&](auto& o) { o.schema = name; }),
                   where && Contains("schema is \"" + name + "\"") &&
                       Contains("lower-case letters, digits and _ are allowed, 63 at most"));
    CHECK_THAT(said([](auto& o) { o.schema = std::string(64, 'a'); }),
               where && Contains("63 at most"));
    CHECK_THAT(said([](auto& o) { o.conninfo = "host"; }), where && Contains("conninfo"));
}

TEST_CASE("limits that a row cannot hold are told at enrolment, and the largest counts",
          "[postgres]")
{
    const scratch::schema home("numbers");
    weir::postgres::store counters(scratch::in(home.name()));
    const auto            most = weir::postgres::most_counted;
    const weir::limiter   all("all", weir::fixed_window{.limit = most, .window = scratch::for_ever},
                              counters);
    CHECK(all.admit("a", {.cost = most - 1}).left == 1);
    CHECK(all.admit("a").left == 0);
    for (int i = 0; i < 3; ++i) all.charge("a", {.cost = ~std::uint64_t{0}});
    CHECK(!all.admit("a"));
    CHECK(all.peek("b").left == most);
    CHECK_THROWS_WITH(weir::limiter("over", weir::fixed_window{.limit = most + 1}, counters),
                      Contains("\"over\"") &&
                          Contains("postgres holds at most 4611686018427387903"));
    CHECK_THROWS_WITH(
        weir::limiter("long", weir::fixed_window{.limit = 1, .window = std::chrono::years(101)},
                      counters),
        Contains("\"long\"") && Contains("100 years"));
    weir::limiter changed("changed", weir::fixed_window{.limit = 1, .window = 1min}, counters);
    CHECK(!changed.set_limit({.limit = most + 1, .window = 1min}));
    CHECK(changed.set_limit({.limit = most, .window = 1min}));
}

TEST_CASE("no message shows the password of a conninfo, however it is broken (X17)", "[postgres]")
{
    const std::string password = "hunter2hunter2";
    for (const auto& conninfo : {
             "host=/nowhere user=weir password=" + password,
             "postgresql://weir:" + password + "@localhost:1/limits",
             "host=/nowhere password='" + password,
             "host=/nowhere password=" + password + " and more",
             "host=/nowhere password=a " + password,
             "password=a " + password + "=b",
             "postgresql://weir:%zz" + password + "@localhost/limits",
             "postgresql://weir:" + password + "@[::1]x/limits",
             "postgresql://weir:" + password + "@[::1/limits",
             "postgresql://weir:" + password + "@localhost/limits?oops",
             "postgresql://weir:" + password + "@localhost/limits?port",
             "postgresql://weir@localhost/limits?sslpassword=" + password + "=b",
             "postgresql://weir:" + password + "@localhost:1:2/limits",
             "postgresql://weir:a@" + password + "@localhost:1/limits",
             "postgresql://weir:" + password + "/a@localhost:1/limits",
         }) {
        auto options     = scratch::in("weir");
        options.conninfo = conninfo;
        options.patience = 2s;
        const auto said  = refusal_of(options);
        CHECK(!said.empty());
        CHECK(said.find("unter2") == std::string::npos);
        INFO(conninfo << ": " << said);
        CHECK_THAT(said, Contains("weir::postgres"));
    }
    auto abstract     = scratch::in("weir");
    abstract.conninfo = "host=@/nowhere,127.0.0.1 port=1,2";
    CHECK_THAT(refusal_of(abstract), Contains("cannot connect"));
    auto options       = scratch::in("weir", "dbname=nowhere password=" + password);
    options.key_secret = "sesame-sesame-sesame";
    CHECK_THAT(refusal_of(options),
               Contains("nowhere") && !Contains(password) && !Contains("sesame"));
}

TEST_CASE("a schema of a newer version is not used, and nothing of it is changed (X9)",
          "[postgres]")
{
    const scratch::schema home("newer");
    scratch::session      by;
    by.must("UPDATE " + home / "meta" + " SET value = '2' WHERE name = 'version'");
    const auto before = catalog_of(by, home.name());
    CHECK_THROWS_AS(weir::postgres::store(scratch::in(home.name())), std::invalid_argument);
    CHECK_THAT(refusal_of(scratch::in(home.name())), Contains("\"" + home.name() + "\"") &&
                                                         Contains("has version \"2\"") &&
                                                         Contains("knows 1"));
    CHECK(catalog_of(by, home.name()) == before);
    CHECK(by.must("SELECT count(*) FROM " + home / "meta").number() == 1);

    const scratch::future_schema bare("bare");  // a layout that shares only the table `meta`
    by.must("CREATE SCHEMA " + bare.name() + "; CREATE TABLE " + bare.name() +
            ".meta (name text PRIMARY KEY, value text); INSERT INTO " + bare.name() +
            ".meta VALUES ('version', '17')");
    CHECK_THAT(refusal_of(scratch::in(bare.name())), Contains("has version \"17\""));
    CHECK(by.must("SELECT count(*) FROM pg_class WHERE relname = 'counters' AND relnamespace = "
                  "to_regnamespace($1)",
                  {bare.name()})
              .number() == 0);
}

TEST_CASE("make_schema = false makes nothing, and says what to run (X9)", "[postgres]")
{
    const scratch::future_schema none("none");
    auto                         options = scratch::in(none.name());
    options.make_schema                  = false;
    CHECK_THROWS_AS(weir::postgres::store(options), std::invalid_argument);
    CHECK_THAT(refusal_of(options), Contains("\"" + none.name() + "\"") &&
                                        Contains("make_schema is off") &&
                                        Contains("weir-postgres.sql"));
    scratch::session by;
    const auto       made = "SELECT count(to_regnamespace('" + none.name() + "'))";
    CHECK(by.must(made).number() == 0);
    options.make_schema = true;
    CHECK(refusal_of(options).empty());
    options.make_schema = false;
    CHECK(refusal_of(options).empty());
}

TEST_CASE("a schema is made as it is asked for, logged or not, under any name", "[postgres]")
{
    const scratch::database own("made");
    scratch::session        by(own.words());
    for (const auto& [name, survives, persistence] :
         {std::tuple("weir", weir::postgres::durability::logged, "p"),
          std::tuple("limits_2", weir::postgres::durability::unlogged, "u")}) {
        auto options     = scratch::in(name, own.words());
        options.survives = survives;
        weir::postgres::store counters(options);
        const weir::limiter   one("ip", weir::gcra{.limit = 1, .window = 24h}, counters);
        CHECK(one.admit("a"));  // the schemas share nothing
        CHECK(!one.admit("a"));
        CHECK(by.must("SELECT relpersistence FROM pg_class WHERE oid = '" + std::string(name) +
                      ".counters'::regclass")
                  .rows.at(0)
                  .at(0) == persistence);
    }
    CHECK(by.must("SELECT count(*) FROM pg_namespace WHERE nspname IN ('weir', 'limits_2')")
              .number() == 2);
    CHECK(by.must("SELECT count(*) FROM pg_proc WHERE pronamespace = 'limits_2'::regnamespace AND "
                  "prosrc ~ '\\mweir\\.'")
              .number() == 0);
}

namespace {

/// A role without rights, which goes away.
class role {
public:
    role(scratch::session& by, const std::string& name)
        : by_(&by), name_(name + "_" + std::to_string(getpid()))
    {
        by.must("CREATE ROLE " + name_ + " LOGIN");
    }
    ~role() { by_->run("DROP OWNED BY " + name_ + " CASCADE; DROP ROLE " + name_); }
    role(const role&)            = delete;
    role& operator=(const role&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::string        words() const { return "user=" + name_; }

private:
    scratch::session* by_;
    std::string       name_;
};

}  // namespace

TEST_CASE("a role with the rights that are documented can do all that a store does", "[postgres]")
{
    scratch::session      by;
    const scratch::schema home("granted");
    const role            limits(by, "limits");
    by.must("GRANT USAGE ON SCHEMA " + home.name() + " TO " + limits.name() +
            "; GRANT SELECT, INSERT, UPDATE, DELETE ON " + home / "counters" + " TO " +
            limits.name() + "; GRANT SELECT ON " + home / "meta" + " TO " + limits.name());

    auto options = scratch::without_memory(scratch::in(home.name(), limits.words()));
    options.keep = {};
    weir::postgres::store counters(options);
    const weir::limiter   window(
          "window", weir::fixed_window{.limit = 10, .window = scratch::for_ever}, counters);
    const weir::limiter sliding("sliding", weir::sliding_window{.limit = 10, .window = 24h},
                                counters);
    const weir::limiter brief("brief", weir::gcra{.limit = 1, .window = 1ms}, counters);
    const auto          all = [&](const auto& one) {
        const auto made = one.admit("a", {.cost = 3});
        CHECK(made.basis == weir::basis::counted);
        CHECK(made.left == 7);
        one.charge("a", {.cost = 5});
        CHECK(one.peek("a").left == 2);
        one.give_back("a", made);
        CHECK(one.peek("a").left == 5);
        CHECK(one.forget("a"));
        CHECK(one.peek("a").left == 10);
    };
    all(window), all(sliding);
    CHECK(weir::admit_all({window("b"), sliding("b")}).basis == weir::basis::counted);
    for (int n = 0; n < 3'000; ++n) (void)brief.admit(std::to_string(n));
    CHECK(by.must("SELECT count(*) FROM " + home / "counters").number() < 1'500);  // it swept
    CHECK(brief.admit("last").basis == weir::basis::counted);
}

TEST_CASE("a role that may not make the schema is told so, and what to run", "[postgres]")
{
    scratch::session             by;
    const role                   limits(by, "poor");
    const scratch::future_schema none("forbidden");
    const auto                   options = scratch::in(none.name(), limits.words());
    CHECK_THROWS_AS(weir::postgres::store(options), std::invalid_argument);
    CHECK_THAT(refusal_of(options), Contains("\"" + none.name() + "\"") &&
                                        Contains("may not make") && Contains("weir-postgres.sql"));

    by.must("CREATE SCHEMA " + none.name());  // CREATE in it is enough
    by.must("GRANT CREATE, USAGE ON SCHEMA " + none.name() + " TO " + limits.name());
    CHECK(refusal_of(options).empty());

    const scratch::schema home("closed");
    CHECK_THAT(refusal_of(scratch::in(home.name(), limits.words())), Contains("permission denied"));
}

TEST_CASE("processes without a secret, and with another one, are warned about once", "[postgres]")
{
    const scratch::schema home("secrets");
    auto                  options = scratch::in(home.name());
    options.warn                  = &hear;
    heard.clear();
    {
        const weir::postgres::store counters(options);
    }
    {
        const weir::postgres::store counters(options);
    }
    CHECK(heard.empty());
    options.key_secret = "another one";
    {
        const weir::postgres::store counters(options);
    }
    {
        const weir::postgres::store counters(options);
    }
    CHECK(heard == std::vector{weir::warning::different_secrets});
    options.key_secret = "";
    {
        const weir::postgres::store counters(options);
    }
    CHECK(heard == std::vector{weir::warning::different_secrets, weir::warning::no_secret,
                               weir::warning::different_secrets});

    scratch::session by;
    const role       limits(by, "reader");  // it cannot note its own
    by.must("GRANT USAGE ON SCHEMA " + home.name() + " TO " + limits.name() + "; GRANT SELECT ON " +
            home / "meta" + " TO " + limits.name());
    options.conninfo += " " + limits.words();
    options.key_secret  = "a third one";
    options.connections = 4;
    heard.clear();
    {
        const weir::postgres::store counters(options);
    }
    CHECK(heard == std::vector{weir::warning::different_secrets});
}

TEST_CASE("no subject, no name of a limiter and no secret is at rest in the schema (F54, F55)",
          "[postgres]")
{
    const scratch::schema home("rest");
    scratch::session      by;
    weir::postgres::store counters(scratch::in(home.name()));
    const weir::limiter   limit("a-name-of-a-limiter",
                                weir::fixed_window{.limit = 3, .window = scratch::for_ever},
                                counters);
    const weir::limiter   other(
          "another-limiter", weir::fixed_window{.limit = 3, .window = scratch::for_ever}, counters);
    (void)limit.admit("198.51.100.4");
    (void)other.admit("198.51.100.4");
    const auto all =
        by.must("SELECT string_agg(c::text, ' ') || (SELECT string_agg(m::text, ' ') FROM " +
                home / "meta" + " AS m) FROM " + home / "counters" + " AS c")
            .rows.at(0)
            .at(0)
            .value();
    CHECK(all.size() > 100);
    for (const auto* const text : {"198.51.100.4", "3139382e", "limiter", "612d6e61", "thirty-two",
                                   "61207365"})  // in hex, too
        CHECK(all.find(text) == std::string::npos);

    const auto keyed = [](const std::string& secret, const std::string& name) {
        const auto key = weir::remote::digest(secret, weir::fixed_window::id, name,
                                              scratch::for_ever)("198.51.100.4");
        char       text[40];
        std::snprintf(text, sizeof text, "%016llx%016llx",
                      static_cast<unsigned long long>(key.high),
                      static_cast<unsigned long long>(key.low));
        return std::string(text);
    };
    const auto there = [&](const std::string& key) {
        return by.must("SELECT count(*) FROM " + home / "counters" + " WHERE key = $1::uuid", {key})
            .number();
    };
    CHECK(there(keyed(scratch::secret, limit.name())) == 1);
    CHECK(there(keyed(scratch::secret, other.name())) == 1);
    CHECK(there(keyed("", limit.name())) == 0);
}

TEST_CASE("stores with one secret share their counters, and with two they do not (F56)",
          "[postgres]")
{
    const scratch::schema    home("share");
    const weir::fixed_window two{.limit = 2, .window = scratch::for_ever};
    auto                     options = scratch::in(home.name());
    options.warn                     = nullptr;
    weir::postgres::store first(options), second(options);
    options.key_secret = "another one";
    weir::postgres::store stranger(options);
    CHECK(weir::limiter("ip", two, first).admit("a").left == 1);
    CHECK(weir::limiter("ip", two, second).admit("a").left == 0);
    CHECK(!weir::limiter("ip", two, first).admit("a"));
    CHECK(weir::limiter("ip", two, stranger).admit("a").left == 1);
}

TEST_CASE("a set in PostgreSQL is admitted whole or not at all, and names who refused",
          "[postgres]")
{
    const scratch::schema home("sets");
    const bool            remembers = GENERATE(false, true);
    auto                  options   = scratch::in(home.name());
    if (!remembers) options.memo_longest = {};
    weir::postgres::store counters(options);
    const weir::limiter   wide("net" + std::to_string(remembers),
                               weir::fixed_window{.limit = 10, .window = scratch::for_ever},
                               counters);
    const weir::limiter   narrow("ip" + std::to_string(remembers),
                                 weir::gcra{.limit = 2, .window = 24h}, counters);
    const weir::limiter   third("user" + std::to_string(remembers),
                                weir::sliding_window{.limit = 4, .window = scratch::for_ever},
                                counters);
    for (int i = 0; i < 5; ++i) {
        const auto made = weir::admit_all({wide("n"), narrow("a"), third("u", {.cost = 2})});
        CHECK(bool(made) == (i < 2));
        if (i == 2) CHECK(made.refused_by().size() == 2);
        if (i >= 2) CHECK(made.refused_by().front() == narrow.name());
    }
    CHECK(wide.peek("n").left == 8);
    CHECK(narrow.peek("a").left == 0);
    CHECK(third.peek("u").left == 0);
    CHECK(!weir::admit_all({wide("n"), wide("m", {.cost = 11})}));
    CHECK(wide.peek("n").left == 8);
    CHECK(weir::admit_all({wide("n"), wide("n", {.cost = 7})}).left == 0);  // one key twice
    CHECK(!weir::admit_all({wide("k", {.cost = 6}), wide("k", {.cost = 6})}));
    CHECK(wide.peek("k").left == 10);
}

TEST_CASE("who must not wait is called back once, in the limiter's words", "[postgres]")
{
    const scratch::schema home("later");
    weir::postgres::store counters(scratch::in(home.name()));
    const weir::limiter   ten("ip", weir::fixed_window{.limit = 10, .window = scratch::for_ever},
                              counters);
    std::mutex            telling;  // what is remembered is told here, the rest elsewhere
    std::vector<weir::decision> told;
    scratch::countdown          all(300);
    for (int n = 0; n < 300; ++n)
        ten.admit_then("a", [&](const weir::decision& made) {
            {
                const std::lock_guard turn(telling);
                told.push_back(made);
            }
            all.one_less();
        });
    all.wait();
    CHECK(told.size() == 300);
    std::vector<std::uint64_t> left;
    for (const auto& made : told) {
        CHECK(made.limiter == "ip");
        if (made) left.push_back(made.left);
    }
    CHECK(left == std::vector<std::uint64_t>{9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
}

TEST_CASE("any bytes of any length are a key and no error of SQL (O39)", "[postgres]")
{
    using namespace std::string_view_literals;
    const scratch::schema home("bytes");
    weir::postgres::store counters(scratch::in(home.name()));
    const weir::limiter   one("'; DROP TABLE", weir::gcra{.limit = 1, .window = 24h}, counters);
    const std::string     large(1 << 20, 'a');
    for (const auto who : {"a\0b"sv, "\xff\xfe"sv, std::string_view(large), ""sv, "'; --"sv}) {
        CHECK(one.admit(who).basis == weir::basis::counted);
        CHECK(!one.admit(who));
    }
}
