#include "checkpoint/config_json.h"

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"

namespace sinter::checkpoint {
namespace {

constexpr int kMaxDepth = 64;
// Ordered objects search all earlier keys for each new one: time grows with the square.
constexpr int kMaxKeys = 5'000;
constexpr size_t kMaxFileBytes = size_t{64} << 20;

[[noreturn]] void fail_limit(std::string_view where, std::string expected) {
  throw Error(ErrorKind::kLimit,
              {.where = std::string(where), .expected = std::move(expected), .found = "more", .mend = {}});
}

}  // namespace

Json parse_config(std::string_view text, std::string_view where) {
  int num_keys = 0;
  int dropped_depth = 0;  // of the key "quantized_layers" while inside its value, else 0
  const auto filter = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) fail_limit(where, fmt::format("JSON nested at most {} deep", kMaxDepth));
    if (event != Json::parse_event_t::key) return true;
    if (dropped_depth != 0 && depth > dropped_depth) return false;
    dropped_depth = 0;
    if (parsed == "quantized_layers") {
      dropped_depth = depth;
      return false;
    }
    if (++num_keys > kMaxKeys) fail_limit(where, fmt::format("at most {} keys", kMaxKeys));
    return true;
  };
  Json json = parse_json(text, where, filter);
  (void)JsonObject(json, std::string(where));  // throws unless it is an object
  return json;
}

Json read_config(const std::filesystem::path& path) {
  return parse_config(read_text_file(path, kMaxFileBytes), path.string());
}

}  // namespace sinter::checkpoint
