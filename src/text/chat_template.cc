#include "text/chat_template.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/file_map.h"

namespace sinter::text {
namespace {

constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";

// A token is written as its text, or as an object with the text under "content".
Json read_special_tokens(const JsonObject& config) {
  static constexpr std::array<const char*, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                        "pad_token", "cls_token", "mask_token"};
  Json tokens = Json::object();
  for (const char* name : kNames) {
    const Json* token = config.find(name);
    if (token == nullptr) continue;
    tokens[name] = token->is_object() ? JsonObject(*token, config.where(name)).get_string("content")
                                      : config.get_string(name);
  }
  return tokens;
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, std::string where, Json special_tokens)
    : special_tokens_(std::move(special_tokens)) {
  add(kDefault, source, std::move(where));
}

void ChatTemplate::add(const std::string& name, std::string_view source, std::string where) {
  templates_.insert_or_assign(name, jinja::Template(source, std::move(where)));
}

std::optional<ChatTemplate> ChatTemplate::load(const std::filesystem::path& folder) {
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  Json config = Json::object();
  if (std::filesystem::exists(config_path)) config = parse_json_file(config_path);
  const JsonObject object(config, config_path.string());

  ChatTemplate chat;
  chat.special_tokens_ = read_special_tokens(object);
  const std::filesystem::path file = folder / "chat_template.jinja";
  if (std::filesystem::exists(file)) {
    chat.add(kDefault, read_text_file(file), file.string());
    return chat;
  }
  const Json* source = object.find("chat_template");
  if (source == nullptr) return std::nullopt;
  const std::string where = object.where("chat_template");
  if (!source->is_array()) {
    chat.add(kDefault, object.get_string("chat_template"), where);
    return chat;
  }
  for (const Json& entry : *source) {
    const JsonObject named(entry, where);
    const std::string name = named.get_string("name");
    // Others are for uses of their own ("rag"), which nobody asks for here.
    if (name == kDefault || name == kToolUse)
      chat.add(name, named.get_string("template"), fmt::format("{}: template '{}'", where, name));
  }
  if (!chat.templates_.contains(kDefault))
    throw Error(ErrorKind::kFormat,
                {.where = where, .expected = "a template named 'default'", .found = "none", .mend = {}});
  return chat;
}

std::string ChatTemplate::render(const ChatRequest& request, const jinja::Limits& limits) const {
  const auto fail = [](const char* where, const char* expected, const Json& found) {
    throw Error(ErrorKind::kUsage,
                {.where = where, .expected = expected, .found = found.type_name(), .mend = {}});
  };
  if (!request.messages.is_array()) fail("messages", "a list", request.messages);
  if (!request.tools.is_null() && !request.tools.is_array()) fail("tools", "a list or null", request.tools);
  if (!request.variables.is_object()) fail("template variables", "an object", request.variables);
  Json variables = special_tokens_;
  variables["documents"] = nullptr;
  for (const auto& [name, value] : request.variables.items()) variables[name] = value;
  variables["messages"] = request.messages;
  variables["tools"] = request.tools;
  variables["add_generation_prompt"] = request.add_generation_prompt;
  const auto named = request.tools.is_null() ? templates_.end() : templates_.find(kToolUse);
  return (named != templates_.end() ? named->second : templates_.at(kDefault)).render(variables, limits);
}

}  // namespace sinter::text
