// The chat template of a checkpoint: a conversation to the prompt that the model was trained on.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "text/jinja/template.h"

namespace sinter::text {

// What is rendered; the names are those of Hugging Face's apply_chat_template.
struct ChatRequest {
  Json messages = Json::array();
  Json tools;  // null or a list of tool definitions
  bool add_generation_prompt = true;
  Json variables = Json::object();  // more for the template: {"enable_thinking": false}
};

class ChatTemplate {
 public:
  // From chat_template.jinja, else from `chat_template` in tokenizer_config.json (a string, or a list of
  // named templates: "tool_use" is then taken for requests with tools). nullopt when the folder has neither.
  // Special tokens (bos_token, eos_token, ...) come from tokenizer_config.json.
  static std::optional<ChatTemplate> load(const std::filesystem::path& folder);

  // `where` names the template in errors; `special_tokens` maps "bos_token" and its like to text.
  ChatTemplate(std::string_view source, std::string where, Json special_tokens);

  // Errors name the template and the line. Error(kUsage) when the template refuses the conversation.
  std::string render(const ChatRequest& request, const jinja::Limits& limits = {}) const;

 private:
  ChatTemplate() = default;
  void add(const std::string& name, std::string_view source, std::string where);

  std::map<std::string, jinja::Template> templates_;  // by name; an unnamed one is "default"
  Json special_tokens_ = Json::object();
};

}  // namespace sinter::text
