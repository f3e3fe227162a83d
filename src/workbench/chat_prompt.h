// A user's message as the prompt that the checkpoint's chat template makes of it.
#pragma once

#include <string>

#include "base/json.h"
#include "workbench/model_folder.h"

namespace sinter::workbench {

struct ChatPrompt {
  std::string user;
  std::string system;  // empty: none
  Json tools;          // null, or an array of tool definitions
};

// Throws Error(kFile) when the checkpoint has no template.
std::string render_chat(const ModelFolder& folder, const ChatPrompt& prompt);

}  // namespace sinter::workbench
