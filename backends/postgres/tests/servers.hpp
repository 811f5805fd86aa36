// SPDX-License-Identifier: BSL-1.0
#pragma once

// A server of a test's own, to be stopped and frozen, and a pooler before it.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace scratch {

/// A cluster or a pooler in a folder of its own, started and ended by tests/tools/<kind>.
class server {
public:
    /// `words` follow the folder: see the tool.
    server(const std::string& kind, const std::string& name, const std::string& words = "")
        : tool_(std::string("bash '") + WEIR_TOOLS_DIR + "/" + kind + "' "), words_(words),
          folder_(std::filesystem::temp_directory_path() /
                  ("weir-" + name + "-" + std::to_string(getpid())))
    {
        start();
    }
    ~server() { (void)run("stop " + folder_.string()); }
    server(const server&)            = delete;
    server& operator=(const server&) = delete;

    /// A cluster is a new one then, without what was in it.
    void start()
    {
        if (!run("start " + folder_.string() + " " + words_))
            throw std::runtime_error("cannot start " + folder_.string());
    }

    [[nodiscard]] std::string folder() const { return folder_.string(); }
    [[nodiscard]] std::string conninfo() const
    {
        return "host=" + folder_.string() + " user=postgres dbname=postgres";
    }

    /// Lines of its log that have `words` in them.
    [[nodiscard]] std::vector<std::string> log_of(const std::string& words) const
    {
        std::ifstream            log(folder_ / "log");
        std::vector<std::string> found;
        for (std::string line; std::getline(log, line);)
            if (line.find(words) != std::string::npos) found.push_back(line);
        return found;
    }

    /// Frozen: it is there and says nothing, and new connections wait.
    void freeze() const { signal_all(SIGSTOP); }
    void thaw() const { signal_all(SIGCONT); }

    /// Ends a cluster and begins it again with what is in it.
    void stop() const { control("stop -m immediate"); }
    void go_on() const { control("start -l log"); }

private:
    bool run(const std::string& deed) const { return std::system((tool_ + deed).c_str()) == 0; }

    void control(const std::string& deed) const
    {
        const auto command = "cd " + folder_.string() +
                             " && bash -c 'source \"" WEIR_TOOLS_DIR
                             "/unprivileged\" && unprivileged \"$(ls -d "
                             "/usr/lib/postgresql/*/bin | tail -n 1)/pg_ctl\" -D data -w -s " +
                             deed + "' </dev/null >/dev/null 2>&1";
        if (std::system(command.c_str()) != 0) throw std::runtime_error("pg_ctl " + deed);
    }

    /// The postmaster first, lest it makes more.
    void signal_all(int signal) const
    {
        std::ifstream file(folder_ / "data" / "postmaster.pid");
        pid_t         postmaster = 0;
        file >> postmaster;
        if (postmaster <= 1) throw std::runtime_error("no postmaster");
        kill(postmaster, signal);
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
            std::ifstream status(entry.path() / "stat");
            pid_t         pid = 0, parent = 0;
            std::string   name, state;
            if (status >> pid >> name >> state >> parent && parent == postmaster) kill(pid, signal);
        }
    }

    std::string           tool_, words_;
    std::filesystem::path folder_;
};

}  // namespace scratch
