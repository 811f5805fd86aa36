// SPDX-License-Identifier: BSL-1.0
#pragma once

// The stores that limits share with other processes, by the name an operator gave them. Opened with
// the first configuration: others under a name need a restart.

#include "settings.hpp"

#include "weir/config/document.hpp"
#include "weir/http/counters.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace proxy {

/// Not thread-safe.
class shared_stores {
public:
    shared_stores();
    ~shared_stores();

    /// Opens those that are new and registers them. One that cannot be opened, or that changed, is
    /// told to the document.
    void open(weir::config::document& from, const std::vector<store_settings>& chosen,
              weir::http::counters& in);

private:
    struct opened;
    std::map<std::string, std::unique_ptr<opened>> opened_;
};

}  // namespace proxy
