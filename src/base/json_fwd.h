#pragma once

#include <nlohmann/json_fwd.hpp>

namespace sinter {

// Objects keep their order: what we write reads like what we read.
using Json = nlohmann::ordered_json;

}  // namespace sinter
