// SPDX-License-Identifier: BSL-1.0

// X17: who we say we are is not believed, or the name of the server leads nowhere. No secret is
// told to anybody meanwhile.

#include <dlfcn.h>
#include <netdb.h>

#include <condition_variable>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>

#include "proxy.hpp"
#include "scene.hpp"

using namespace faults;

namespace {

std::mutex              name_turn;
std::condition_variable name_free;
bool                    name_hangs = false;
int                     name_asked = 0;

const std::string password = "pass-word-0123456789";

/// A server that asks the role `limits` for a password.
void ask_for_passwords(const scratch::server& of)
{
    scratch::session by(of.conninfo());
    by.must("CREATE ROLE limits LOGIN PASSWORD '" + password + "'");
    by.must("GRANT CREATE ON DATABASE postgres TO limits");
    const auto        path = of.folder() + "/data/pg_hba.conf";
    std::ifstream     file(path);
    const std::string rest{std::istreambuf_iterator<char>(file), {}};
    std::ofstream(path) << "local all limits scram-sha-256\n" << rest;
    by.must("SELECT pg_reload_conf()");
}

std::string words_of(const std::string& conninfo)
{
    try {
        weir::postgres::store counters(hasty(conninfo));
        return "";
    } catch (const weir::postgres::unreachable& error) {
        return error.what();
    }
}

void check_silent(const std::string& text)
{
    INFO(text);
    for (const auto& hidden : {password, secret, std::string("another-word")})
        CHECK(text.find(hidden) == std::string::npos);
}

}  // namespace

/// Stands before the system's, for libpq too: a name that hangs when told to.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** made)
{
    if (node != nullptr && std::strcmp(node, "hangs.invalid") == 0) {
        std::unique_lock turn(name_turn);
        ++name_asked;
        name_free.wait(turn, [] { return !name_hangs; });
        return EAI_AGAIN;
    }
    using lookup             = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto system = reinterpret_cast<lookup>(dlsym(RTLD_NEXT, "getaddrinfo"));
    return system(node, service, hints, made);
}

TEST_CASE(
    "a wrong password is an error at the start and an outage later, and is told to nobody (X17)",
    "[faults][X17]")
{
    const scratch::server own("postgres", "fsecret",
                              no_fsync + "log_statement=all log_connections=on "
                                         "log_min_messages=debug1");
    ask_for_passwords(own);
    const auto as = [&](const std::string& word) {
        return "host=" + own.folder() + " dbname=postgres user=limits password=" + word;
    };
    const auto wrong = words_of(as("another-word"));
    CHECK(wrong.find("password authentication failed") != std::string::npos);
    check_silent(wrong);
    const auto none = words_of("host=" + own.folder() + " dbname=postgres user=limits");
    CHECK(none.find("no password supplied") != std::string::npos);
    const auto url = words_of("postgresql://limits:another-word@/postgres?host=" + own.folder());
    CHECK(url.find("password authentication failed") != std::string::npos);
    check_silent(url);

    weir::postgres::store counters(hasty(as(password)));
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    scratch::session by(own.conninfo());
    const auto       change = [&](const std::string& to) {
        by.must("SET log_statement = none; SET log_min_error_statement = panic; "
                            "ALTER ROLE limits PASSWORD '" +
                      to + "'");
        by.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limits'");
    };
    crowd asks(all);
    change("changed");
    const auto begun = clock::now();
    std::this_thread::sleep_for(span() / 2);
    const auto mended = clock::now();
    change(password);
    CHECK(comes_back(all.closed));
    const auto back = clock::now();
    const auto told = asks.stop();
    judge("X17 wrong password", told);
    CHECK(share_authoritative(between(told, begun + 300ms, mended)) == 0);
    CHECK(back - mended < 2s);
    judge_outage(all.closed);
    for (const auto of :
         {warning::store_away, warning::store_back, warning::no_secret, warning::different_secrets})
        check_silent(std::string(text(of)));
    auto log = own.log_of("");
    std::erase_if(log, [](const auto& line) {  // the test's own words
        return line.find("CREATE ROLE limits") != std::string::npos;
    });
    CHECK(log.size() > 100);
    for (const auto& line : log)
        for (const auto& hidden : {password, secret, std::string("another-word")})
            if (line.find(hidden) != std::string::npos) FAIL_CHECK(line);
}

TEST_CASE("TLS that the server refuses is an error at the start and an outage later (X17)",
          "[faults][X17]")
{
    proxy      between_us(cluster().folder());
    auto       words = between_us.conninfo() + " sslmode=require password=" + password;
    const auto why   = words_of(words);
    CHECK(why.find("does not support SSL") != std::string::npos);
    check_silent(why);
    auto options              = hasty(words);
    options.start_unconnected = true;
    weir::postgres::store counters(options);
    const limits          all(counters);
    crowd                 asks(all);
    std::this_thread::sleep_for(span() / 2);
    const auto told = asks.stop();
    judge("X17 TLS refused", told);
    CHECK(share_authoritative(told) == 0);
    CHECK(heard_so_far() == begin_of_outage);
    judge_connects(between_us.accepted());
}

TEST_CASE("a name that leads nowhere, or is looked up for ever, holds no caller (X17)",
          "[faults][X17]")
{
    const auto why = words_of("host=hangs.invalid user=postgres password=" + password);
    CHECK(why.find("could not translate host name") != std::string::npos);
    check_silent(why);

    // The server goes away, and while its name is looked up again nobody comes back from it.
    const auto&           own     = cluster();
    auto                  options = hasty("host=" + own.folder() +
                                              ",hangs.invalid user=postgres "
                                                               "dbname=postgres password=" +
                                              password,
                                          "fname");
    weir::postgres::store counters(options);
    const limits          all(counters);
    REQUIRE(comes_back(all.closed));
    {
        const std::lock_guard turn(name_turn);
        name_hangs = true, name_asked = 0;
    }
    crowd asks(all);
    own.stop();
    CHECK(within(5s, [&] {
        const std::lock_guard turn(name_turn);
        return name_asked > 0;
    }));
    const auto begun = clock::now();
    std::this_thread::sleep_for(span() / 2);
    own.go_on();
    {
        const std::lock_guard turn(name_turn);
        CHECK(name_asked == 1);  // it still hangs
        name_hangs = false;
    }
    name_free.notify_all();
    const auto free = clock::now();
    CHECK(comes_back(all.closed));
    const auto back = clock::now();
    const auto told = asks.stop();
    judge("X17 name hangs", told);
    CHECK(share_authoritative(between(told, begun + 300ms, free)) == 0);
    CHECK(back - free < 2s);
    judge_outage(all.closed);
}
