// SPDX-License-Identifier: BSL-1.0
#pragma once

// What `weir-proxy` without a configuration shows: a few limits before an upstream of its own.

#include <memory>
#include <string>

namespace proxy {

/// Answers everything, on a thread of its own, with what it was asked.
class demo_upstream {
public:
    demo_upstream();
    ~demo_upstream();

    [[nodiscard]] unsigned short port() const noexcept;

private:
    struct parts;
    std::unique_ptr<parts> parts_;
};

/// The configuration, as in a file.
[[nodiscard]] std::string demo_configuration(unsigned short upstream);

/// What to try, for people to read.
[[nodiscard]] std::string demo_text();

}  // namespace proxy
