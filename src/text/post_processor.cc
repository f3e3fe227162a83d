#include "text/post_processor.h"

#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "text/pattern_json.h"
#include "text/tokenizer_json.h"

namespace sinter::text {
namespace {

PostProcessor read_template(const JsonObject& object) {
  PostProcessor around;
  bool after_text = false;
  for (const Json& item : list_at(object, "single")) {
    const JsonObject piece(item, object.where("single"));
    if (piece.has("Sequence")) {
      if (after_text)
        throw Error(ErrorKind::kUnsupported,
                    {.where = piece.where(), .expected = "the text once", .found = "it twice", .mend = {}});
      after_text = true;
      continue;
    }
    const std::string name = piece.get_object("SpecialToken").get_string("id");
    const std::vector<int64_t> ids =
        object.get_object("special_tokens").get_object(name).get_ints("ids", 0, kMaxTokenId);
    std::vector<int32_t>& side = after_text ? around.suffix : around.prefix;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!after_text)
    throw Error(
        ErrorKind::kFormat,
        {.where = object.where("single"), .expected = "the text once", .found = "no 'Sequence'", .mend = {}});
  return around;
}

}  // namespace

PostProcessor read_post_processor(const Json& json, const std::string& where) {
  if (json.is_null()) return {};
  const JsonObject object(json, where);
  const std::string type = object.get_string("type");
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(object);
  if (type != "Sequence")
    throw Error(ErrorKind::kUnsupported, {.where = where,
                                          .expected = "ByteLevel, TemplateProcessing or Sequence",
                                          .found = fmt::format("'{}'", type),
                                          .mend = {}});
  PostProcessor around;
  for (const Json& part : list_at(object, "processors")) {
    PostProcessor outer = read_post_processor(part, where);
    outer.prefix.insert(outer.prefix.end(), around.prefix.begin(), around.prefix.end());
    outer.suffix.insert(outer.suffix.begin(), around.suffix.begin(), around.suffix.end());
    around = std::move(outer);
  }
  return around;
}

}  // namespace sinter::text
