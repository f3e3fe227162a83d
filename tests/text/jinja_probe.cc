// The template engine behind a pipe, for comparison with the jinja2 package: one JSON request a line on
// stdin, one answer a line on stdout.
//   {"template": TEXT, "variables": {...}, "now": SECONDS}  ->  {"text": ...} or {"kind": ..., "error": ...}
//   {"folder": PATH, "messages": [...], "tools": ..., "add_generation_prompt": ..., "variables": {...}}
#include <iostream>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "text/chat_template.h"
#include "text/jinja/template.h"

namespace sinter::text {
namespace {

Json render(const Json& request) {
  if (!request.contains("folder")) {
    const jinja::Template parsed(request.at("template").get<std::string>(), "template");
    return {{"text", parsed.render(request.at("variables"), {}, request.value("now", std::time_t{0}))}};
  }
  const auto chat = ChatTemplate::load(request.at("folder").get<std::string>());
  if (!chat) return {{"text", nullptr}};
  return {{"text", chat->render({.messages = request.at("messages"),
                                 .tools = request.at("tools"),
                                 .add_generation_prompt = request.at("add_generation_prompt").get<bool>(),
                                 .variables = request.at("variables")})}};
}

}  // namespace
}  // namespace sinter::text

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    sinter::Json reply;
    try {
      reply = sinter::text::render(sinter::parse_json(line, "request", 200));
    } catch (const sinter::Error& error) {
      reply = {{"kind", std::string(name(error.kind()))}, {"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}
