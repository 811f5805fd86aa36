// SPDX-License-Identifier: BSL-1.0

#include "pages.hpp"

#include "rewrite.hpp"

namespace proxy {

error_text error_page(int status)
{
    error_text made{
        {{{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}}},
        std::to_string(status)};
    made.body.append(" ").append(reason_of(status)).append("\n");
    return made;
}

}  // namespace proxy
