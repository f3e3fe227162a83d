#include "workbench/chat_prompt.h"

#include "base/error.h"
#include "text/chat_template.h"

namespace sinter::workbench {

std::string render_chat(const ModelFolder& folder, const ChatPrompt& prompt) {
  const std::optional<text::ChatTemplate> chat_template = text::ChatTemplate::load(folder.path());
  if (!chat_template)
    throw Error(ErrorKind::kFile,
                {.where = folder.path().string(),
                 .expected = "chat_template.jinja, or chat_template in tokenizer_config.json",
                 .found = "neither",
                 .mend = "without --chat the prompt is continued as it is"});
  text::ChatRequest request;
  if (!prompt.system.empty()) request.messages.push_back({{"role", "system"}, {"content", prompt.system}});
  request.messages.push_back({{"role", "user"}, {"content", prompt.user}});
  request.tools = prompt.tools;
  return chat_template->render(request);
}

}  // namespace sinter::workbench
