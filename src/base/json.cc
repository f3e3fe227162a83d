#include "base/json.h"

#include <cmath>

#include "base/error.h"
#include "base/file_map.h"

namespace sinter {
namespace {

std::string describe(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return fmt::format("{} {}", json.type_name(), text);
}

[[noreturn]] void fail_type(const std::string& where, std::string_view expected, const Json& found) {
  throw Error(ErrorKind::kFormat,
              {.where = where, .expected = std::string(expected), .found = describe(found), .mend = {}});
}

int64_t as_int(const Json& json, const std::string& where, int64_t min, int64_t max) {
  const std::string expected = fmt::format("an integer from {} to {}", min, max);
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    fail_type(where, expected, json);
  int64_t value = 0;
  if (json.is_number_integer()) {
    value = json.get<int64_t>();
  } else if (json.is_number_float()) {
    const double number = json.get<double>();
    if (std::floor(number) != number || std::abs(number) > 9e15) fail_type(where, expected, json);
    value = static_cast<int64_t>(number);
  } else {
    fail_type(where, expected, json);
  }
  if (value < min || value > max) fail_type(where, expected, json);
  return value;
}

// nlohmann's parser recurses on neither objects nor arrays, but destroying and dumping do.
class DepthLimit {
 public:
  DepthLimit(int max_depth, std::string_view where) : max_depth_(max_depth), where_(where) {}
  bool operator()(int depth, Json::parse_event_t, Json&) const {
    if (depth > max_depth_)
      throw Error(ErrorKind::kLimit, {.where = std::string(where_),
                                      .expected = fmt::format("JSON nested at most {} deep", max_depth_),
                                      .found = "deeper nesting",
                                      .mend = {}});
    return true;
  }

 private:
  int max_depth_;
  std::string_view where_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where, const Json::parser_callback_t& filter) {
  try {
    return Json::parse(text.begin(), text.end(), filter);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorKind::kFormat, {.where = std::string(where),
                                     .expected = "JSON",
                                     .found = fmt::format("a syntax error at byte {}", error.byte),
                                     .mend = {}});
  } catch (const Json::exception& error) {  // numbers out of range
    throw Error(ErrorKind::kFormat,
                {.where = std::string(where), .expected = "JSON", .found = error.what(), .mend = {}});
  }
}

Json parse_json(std::string_view text, std::string_view where, int max_depth) {
  return parse_json(text, where, DepthLimit(max_depth, where));
}

Json parse_json_file(const std::filesystem::path& path, int max_depth) {
  return parse_json(read_text_file(path), path.string(), max_depth);
}

JsonObject::JsonObject(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {
  if (!json.is_object()) fail_type(where_, "a JSON object", json);
}

std::string JsonObject::where(std::string_view key) const { return fmt::format("{}: key '{}'", where_, key); }

const Json* JsonObject::find(std::string_view key) const {
  const auto it = json_->find(std::string(key));
  return it == json_->end() || it->is_null() ? nullptr : &*it;
}

bool JsonObject::has(std::string_view key) const { return find(key) != nullptr; }

const Json& JsonObject::at(std::string_view key) const {
  const Json* json = find(key);
  if (json == nullptr)
    throw Error(ErrorKind::kFormat, {.where = where(key),
                                     .expected = "a value",
                                     .found = json_->contains(key) ? "null" : "no such key",
                                     .mend = {}});
  return *json;
}

int64_t JsonObject::get_int(std::string_view key, int64_t min, int64_t max) const {
  return as_int(at(key), where(key), min, max);
}

double JsonObject::get_double(std::string_view key) const {
  const Json& json = at(key);
  if (!json.is_number() || !std::isfinite(json.get<double>())) fail_type(where(key), "a number", json);
  return json.get<double>();
}

bool JsonObject::get_bool(std::string_view key) const {
  const Json& json = at(key);
  if (!json.is_boolean()) fail_type(where(key), "true or false", json);
  return json.get<bool>();
}

std::string JsonObject::get_string(std::string_view key) const {
  const Json& json = at(key);
  if (!json.is_string()) fail_type(where(key), "a string", json);
  return json.get<std::string>();
}

JsonObject JsonObject::get_object(std::string_view key) const { return JsonObject(at(key), where(key)); }

int64_t JsonObject::get_int_or(std::string_view key, int64_t min, int64_t max, int64_t otherwise) const {
  return has(key) ? get_int(key, min, max) : otherwise;
}

double JsonObject::get_double_or(std::string_view key, double otherwise) const {
  return has(key) ? get_double(key) : otherwise;
}

bool JsonObject::get_bool_or(std::string_view key, bool otherwise) const {
  return has(key) ? get_bool(key) : otherwise;
}

std::string JsonObject::get_string_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? get_string(key) : std::string(otherwise);
}

std::optional<JsonObject> JsonObject::find_object(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return get_object(key);
}

std::vector<int64_t> JsonObject::get_ints(std::string_view key, int64_t min, int64_t max) const {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_array()) return {as_int(*json, where(key), min, max)};
  std::vector<int64_t> values;
  for (const Json& item : *json) values.push_back(as_int(item, where(key), min, max));
  return values;
}

std::vector<std::string> JsonObject::get_strings(std::string_view key) const {
  const Json* json = find(key);
  if (json == nullptr) return {};
  if (!json->is_array()) fail_type(where(key), "a list of strings", *json);
  std::vector<std::string> values;
  for (const Json& item : *json) {
    if (!item.is_string()) fail_type(where(key), "a list of strings", item);
    values.push_back(item.get<std::string>());
  }
  return values;
}

}  // namespace sinter
