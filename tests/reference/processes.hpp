// SPDX-License-Identifier: BSL-1.0
#pragma once

// Other processes, and what they share with the one that made them.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>
#include <vector>

namespace reference {

/// Processes that start together. Make them while no store is open here: a store has connections,
/// and may have threads.
class crew {
public:
    crew()
    {
        if (pipe(ready_) != 0 || pipe(start_) != 0 || pipe(told_) != 0) std::abort();
    }
    ~crew()
    {
        for (const int end : {ready_[0], ready_[1], start_[0], start_[1], told_[0], told_[1]})
            if (end >= 0) close(end);
    }
    crew(const crew&)            = delete;
    crew& operator=(const crew&) = delete;

    /// `work(wait)` runs in a process of its own, calls `wait()` when it is ready, and returns a
    /// number that `sum` adds up.
    template <class Work>
    pid_t add(Work&& work)
    {
        const auto child = fork();
        if (child != 0) return pids_.emplace_back(child);
        close(start_[1]);
        try {
            const std::uint64_t made    = work([this] { wait(); });
            const auto          written = write(told_[1], &made, sizeof made);
            _exit(written == sizeof made ? 0 : 1);
        } catch (const std::exception& error) {
            std::fprintf(stderr, "a process of the test ends: %s\n", error.what());
            _exit(1);
        }
    }

    /// Once all are ready.
    void start()
    {
        char byte = 0;
        for (std::size_t n = 0; n < pids_.size(); ++n) must(read(ready_[0], &byte, 1) == 1);
        close(std::exchange(start_[1], -1));
    }

    /// What those told that came to their end; ends when all have.
    std::uint64_t sum()
    {
        for (int* const end : {&start_[1], &told_[1]})
            if (*end >= 0) close(std::exchange(*end, -1));
        std::uint64_t all = 0, one = 0;
        while (read(told_[0], &one, sizeof one) == sizeof one) all += one;
        for (const auto child : pids_) waitpid(child, nullptr, 0);
        return all;
    }

private:
    void wait()
    {
        char byte = 0;
        must(write(ready_[1], &byte, 1) == 1);
        must(read(start_[0], &byte, 1) == 0);  // until nobody holds the other end any more
    }
    static void must(bool done)
    {
        if (!done) std::abort();
    }

    int                ready_[2] = {-1, -1};
    int                start_[2] = {-1, -1};
    int                told_[2]  = {-1, -1};
    std::vector<pid_t> pids_;
};

/// A value in memory that processes made later have in common.
template <class Value>
class shared {
public:
    shared()
    {
        void* const place =
            mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED) std::abort();
        value_ = new (place) Value{};
    }
    ~shared() { munmap(value_, sizeof(Value)); }
    shared(const shared&)            = delete;
    shared& operator=(const shared&) = delete;

    Value& operator*() const { return *value_; }
    Value* operator->() const { return value_; }

private:
    Value* value_;
};

/// Where the threads of several processes meet.
class meeting_of_processes {
public:
    explicit meeting_of_processes(unsigned threads)
    {
        pthread_barrierattr_t across;
        pthread_barrierattr_init(&across);
        pthread_barrierattr_setpshared(&across, PTHREAD_PROCESS_SHARED);
        pthread_barrier_init(&*barrier_, &across, threads);
        pthread_barrierattr_destroy(&across);
    }

    void wait() { pthread_barrier_wait(&*barrier_); }

private:
    shared<pthread_barrier_t> barrier_;
};

}  // namespace reference
