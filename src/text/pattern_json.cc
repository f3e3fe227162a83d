#include "text/pattern_json.h"

#include "base/error.h"

namespace sinter::text {

Regex read_pattern(const JsonObject& object) {
  const JsonObject pattern = object.get_object("pattern");
  if (pattern.has("Regex")) return Regex(pattern.get_string("Regex"), pattern.where());
  return Regex::literal(pattern.get_string("String"), pattern.where());
}

const Json& list_at(const JsonObject& object, std::string_view key) {
  const Json& list = object.at(key);
  if (!list.is_array())
    throw Error(ErrorKind::kFormat,
                {.where = object.where(key), .expected = "a list", .found = list.type_name(), .mend = {}});
  return list;
}

}  // namespace sinter::text
