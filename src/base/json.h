// JSON from files that may be broken or hostile: depth-limited parsing and typed look-ups whose errors
// name the file and the key. Include in .cc files; headers that only mention Json take base/json_fwd.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace sinter {

// Throws Error(kFormat) on a syntax error (with the byte offset), nesting over `max_depth`,
// or text that is not UTF-8.
Json parse_json(std::string_view text, std::string_view where, int max_depth = 64);
// With a filter of the caller's, which sees every event first and limits what it wants limited. Errors as
// above.
Json parse_json(std::string_view text, std::string_view where, const Json::parser_callback_t& filter);
Json parse_json_file(const std::filesystem::path& path, int max_depth = 64);

// A JSON object with a name for errors: "config.json" -> "config.json: key 'hidden_size'".
// `null` counts as absent, as in the Hugging Face files.
class JsonObject {
 public:
  // Throws Error(kFormat) unless `json` is an object. Keeps a pointer: `json` must outlive it.
  JsonObject(const Json& json, std::string where);

  bool has(std::string_view key) const;
  const Json* find(std::string_view key) const;  // nullptr when absent or null
  const Json& at(std::string_view key) const;    // throws when absent

  // Required values; wrong type or range is Error(kFormat). Integers written as 6144.0 are accepted.
  int64_t get_int(std::string_view key, int64_t min, int64_t max) const;
  double get_double(std::string_view key) const;
  bool get_bool(std::string_view key) const;
  std::string get_string(std::string_view key) const;
  JsonObject get_object(std::string_view key) const;

  // The same with a default for absent keys.
  int64_t get_int_or(std::string_view key, int64_t min, int64_t max, int64_t otherwise) const;
  double get_double_or(std::string_view key, double otherwise) const;
  bool get_bool_or(std::string_view key, bool otherwise) const;
  std::string get_string_or(std::string_view key, std::string_view otherwise) const;
  std::optional<JsonObject> find_object(std::string_view key) const;

  // An int or a list of ints, as for eos_token_id; empty when absent.
  std::vector<int64_t> get_ints(std::string_view key, int64_t min, int64_t max) const;
  std::vector<std::string> get_strings(std::string_view key) const;  // empty when absent

  const Json& json() const { return *json_; }
  const std::string& where() const { return where_; }
  std::string where(std::string_view key) const;

 private:
  const Json* json_;
  std::string where_;
};

}  // namespace sinter
