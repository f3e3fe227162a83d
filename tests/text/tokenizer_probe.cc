// A tokenizer behind a pipe, for comparison with the tokenizers package: one JSON request a line on
// stdin, one answer a line on stdout. Text travels as hexadecimal, since it may be invalid UTF-8.
#include <cstdio>
#include <exception>
#include <iostream>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "text/incremental_decoder.h"
#include "text/tokenizer.h"

namespace sinter::text {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

Json answer(const JsonObject& request, std::optional<Tokenizer>& tokenizer) {
  const std::string op = request.get_string("op");
  if (op == "load") {
    tokenizer.emplace(Tokenizer::load(request.get_string("folder")));
    return {{"vocab_size", tokenizer->vocab_size()}};
  }
  if (!tokenizer)
    throw Error(ErrorKind::kUsage, {.where = "request", .expected = "load first", .found = op, .mend = {}});
  if (op == "encode") {
    const std::string text = from_hex(request.get_string("hex"));
    const bool allow_special = request.get_bool_or("allow_special", true);
    return {{"ids", request.get_bool_or("prompt", false) ? tokenizer->encode_prompt(text, allow_special)
                                                         : tokenizer->encode(text, allow_special)}};
  }
  const std::vector<int64_t> wide = request.get_ints("ids", 0, INT32_MAX);
  const std::vector<int32_t> ids(wide.begin(), wide.end());
  const bool skip_special = request.get_bool_or("skip_special", false);
  IncrementalDecoder decoder(*tokenizer, skip_special);
  Json pieces = Json::array();
  for (const int32_t id : ids) pieces.push_back(to_hex(decoder.push(id)));
  pieces.push_back(to_hex(decoder.flush()));
  return {{"hex", to_hex(tokenizer->decode(ids, skip_special))}, {"pieces", pieces}};
}

}  // namespace
}  // namespace sinter::text

int main() {
  std::optional<sinter::text::Tokenizer> tokenizer;
  for (std::string line; std::getline(std::cin, line);) {
    sinter::Json reply;
    try {
      const sinter::Json request = sinter::parse_json(line, "request");
      reply = sinter::text::answer(sinter::JsonObject(request, "request"), tokenizer);
    } catch (const sinter::Error& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}
