#include "workbench/generate.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_map.h"
#include "base/json.h"
#include "cli/model_option.h"
#include "cli/run_options.h"
#include "cli/verb.h"
#include "engine/generator.h"
#include "workbench/chat_prompt.h"
#include "workbench/score.h"

namespace sinter::cli {
namespace {

// As a shell reports a program that was interrupted.
constexpr int kInterrupted = 130;
constexpr size_t kMaxPromptBytes = size_t{256} << 20;

std::atomic<bool> is_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// The first Ctrl-C ends the text after the current token; the second one ends the program.
void catch_interrupt() {
  struct sigaction action = {};
  action.sa_handler = [](int) { is_interrupted.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
}

std::string read_stdin() {
  std::string text;
  char buffer[1 << 16];
  while (const size_t size = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, size);
    if (text.size() > kMaxPromptBytes)
      throw Error(ErrorKind::kLimit,
                  {.where = "stdin",
                   .expected = fmt::format("a prompt of at most {} bytes", kMaxPromptBytes),
                   .found = "more",
                   .mend = ""});
  }
  if (std::ferror(stdin) != 0)
    throw Error(ErrorKind::kFile,
                {.where = "stdin", .expected = "text", .found = std::strerror(errno), .mend = ""});
  return text;
}

struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int32_t> top_k;
  uint64_t seed = 0;

  void define(CLI::App& app) {
    app.add_option("--temperature", temperature, "0: always the most probable token");
    app.add_option("--top-k", top_k, "Only the K most probable; 0: all");
    app.add_option("--top-p", top_p, "Only the most probable that together reach P");
    app.add_option("--min-p", min_p, "Only those at least P times as probable as the first");
    app.add_option("--repetition-penalty", repetition_penalty,
                   "Divides logits of tokens seen before; 1: none");
    app.add_option("--presence-penalty", presence_penalty, "Taken from logits of tokens seen before");
    app.add_option("--frequency-penalty", frequency_penalty, "The same for each time a token was seen");
    add_seed(app, seed, "Equal seeds give equal texts");
  }

  // Over what the checkpoint recommends, which is said once.
  ops::SampleParams resolve(const checkpoint::Checkpoint& checkpoint, const Console& console) const {
    std::vector<std::string> found;
    ops::SampleParams params = workbench::sampling_defaults(checkpoint, {}, found);
    std::string defaults;
    for (const std::string& key : found) defaults += fmt::format("{}{}", defaults.empty() ? "" : ", ", key);
    if (!defaults.empty()) console.note("sampling from generation_config.json: " + defaults);
    params.temperature = temperature.value_or(params.temperature);
    params.top_k = top_k.value_or(params.top_k);
    params.top_p = top_p.value_or(params.top_p);
    params.min_p = min_p.value_or(params.min_p);
    params.repetition_penalty = repetition_penalty.value_or(params.repetition_penalty);
    params.presence_penalty = presence_penalty.value_or(params.presence_penalty);
    params.frequency_penalty = frequency_penalty.value_or(params.frequency_penalty);
    params.seed = seed;
    return params;
  }
};

struct Options {
  std::string model, prompt, tokens_path, system, tools_path;
  bool is_chat = false, ignore_eos = false;
  int64_t max_tokens = 256, chunk = 512, context = 0;
  SamplingOptions sampling;
  RunOptions run;
};

Json read_tools(const std::string& path) {
  Json tools = parse_json_file(path);
  const auto is_tool = [](const Json& tool) { return tool.is_object(); };
  if (!tools.is_array() || !std::ranges::all_of(tools, is_tool))
    throw Error(ErrorKind::kFormat,
                {.where = path,
                 .expected = "a JSON array of objects, each a tool's definition",
                 .found = tools.is_array() ? "an array of something else" : tools.type_name(),
                 .mend = {}});
  return tools;
}

std::vector<int32_t> encode(const Options& options, const workbench::ModelFolder& folder,
                            const text::Tokenizer& tokenizer, const std::string& prompt) {
  if (!options.is_chat) return tokenizer.encode_prompt(prompt);
  workbench::ChatPrompt chat{.user = prompt, .system = options.system, .tools = nullptr};
  if (!options.tools_path.empty()) chat.tools = read_tools(options.tools_path);
  return tokenizer.encode(workbench::render_chat(folder, chat));
}

void report(const workbench::GenerateResult& result, const dispatch::Context& context, bool has_text,
            const Console& console) {
  const engine::GenerateResult& run = result.run;
  if (console.json) {
    Json json = {{"text", result.text},
                 {"tokens", run.tokens},
                 {"num_prompt_tokens", run.num_prompt_tokens},
                 {"prefill_tokens_per_s", run.prefill_tokens_per_s()},
                 {"decode_tokens_per_s", run.decode_tokens_per_s()},
                 {"finish_reason", name(run.finish_reason)},
                 {"device", context.device().name}};
    if (const auto& placement = context.weight_placement(); placement.upload_s > 0)
      json["upload"] = {{"bytes", placement.uploaded_bytes}, {"seconds", placement.upload_s}};
    if (run.gpu)
      json["decode_in_graphs"] = {{"num_steps", run.gpu->num_steps},
                                  {"num_eager_steps", run.gpu->num_eager_steps},
                                  {"num_allocations", run.gpu->num_allocations},
                                  {"num_synchronizations", run.gpu->num_synchronizations},
                                  {"num_kernel_launches", run.gpu->num_kernel_launches},
                                  {"num_graph_launches", run.gpu->num_graph_launches},
                                  {"num_copies", run.gpu->num_copies}};
    console.emit(json);
    return;
  }
  if (!has_text) {
    std::string text;
    for (const int32_t id : run.tokens) text += fmt::format("{}{}", text.empty() ? "" : " ", id);
    console.print(text);
  }
  if (!result.text.ends_with('\n')) console.print("\n");
  std::fflush(stdout);
  console.note(fmt::format("{} prompt tokens at {:.1f} tokens/s, {} new ones at {:.1f} tokens/s ({})",
                           run.num_prompt_tokens, run.prefill_tokens_per_s(), run.tokens.size(),
                           run.decode_tokens_per_s(), name(run.finish_reason)));
}

int run_generate(const Options& options, Console& console) {
  const bool has_tokens = !options.tokens_path.empty();
  if (has_tokens && options.is_chat)
    throw Error(ErrorKind::kUsage,
                {.where = "--chat", .expected = "--prompt", .found = "--tokens", .mend = ""});
  if (!options.is_chat && (!options.system.empty() || !options.tools_path.empty()))
    throw Error(ErrorKind::kUsage,
                {.where = "--system and --tools", .expected = "--chat", .found = "none", .mend = ""});
  options.run.check();
  const std::string prompt = options.prompt == "-" ? read_stdin() : options.prompt;
  // What can be wrong with the prompt comes before the minutes that weights may take.
  workbench::ModelFolder folder = workbench::open_model_folder(options.model);
  options.run.check_weights(folder);
  std::optional<text::Tokenizer> tokenizer;
  std::vector<int32_t> ids;
  if (has_tokens) {
    ids = workbench::read_token_file(options.tokens_path);
    engine::check_token_ids(ids, folder.spec.V, options.tokens_path);
    if (std::filesystem::exists(folder.path() / "tokenizer.json"))
      tokenizer.emplace(workbench::load_tokenizer(folder));
  } else {
    tokenizer.emplace(workbench::load_tokenizer(folder));
    ids = encode(options, folder, *tokenizer, prompt);
  }
  if (ids.empty())
    throw Error(ErrorKind::kUsage, {.where = has_tokens ? options.tokens_path : "--prompt",
                                    .expected = has_tokens ? "token ids" : "text",
                                    .found = options.is_chat ? "none after the chat template" : "none",
                                    .mend = ""});
  const ops::SampleParams sampling = options.sampling.resolve(folder.checkpoint, console);
  engine::check_sampling(sampling);
  const int64_t room = options.context > 0 ? options.context : folder.spec.max_positions;
  const int64_t num_tokens = std::min(room, static_cast<int64_t>(ids.size()) + options.max_tokens);
  workbench::Session session = options.run.load(std::move(folder), console, options.chunk, num_tokens);

  Progress progress(console, "prefill");
  workbench::GenerateOptions generate_options{
      .max_new_tokens = options.max_tokens,
      .sampling = sampling,
      .ignore_eos = options.ignore_eos,
      .engine = {.context = options.context, .chunk = options.chunk},
      .on_prefill = progress.callback(),
      .on_text = {},
      .is_cancelled = [] { return is_interrupted.load(std::memory_order_relaxed); }};
  if (!console.json)
    generate_options.on_text = [&](std::string_view text) {
      progress.clear();
      console.print(text);
      std::fflush(stdout);
    };
  catch_interrupt();
  const workbench::GenerateResult result =
      workbench::generate(session, tokenizer ? &*tokenizer : nullptr, std::move(ids), generate_options);
  report(result, session.context(), tokenizer.has_value(), console);
  return result.run.finish_reason == engine::FinishReason::kCancelled ? kInterrupted : kOk;
}

}  // namespace

std::function<int(Console&)> define_generate(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  auto* input = app.add_option_group("input");
  input->add_option("--prompt", options->prompt, "Text to continue; - reads stdin");
  input->add_option("--tokens", options->tokens_path,
                    "File with a JSON array of token ids to continue; needs no tokenizer");
  input->require_option(1);
  app.add_flag("--chat", options->is_chat, "The prompt is a user's message; uses the chat template");
  app.add_option("--system", options->system, "System message, with --chat");
  app.add_option("--tools", options->tools_path, "File with a JSON array of tools, with --chat");
  app.add_option("--max-tokens", options->max_tokens, "New tokens, at most")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_flag("--ignore-eos", options->ignore_eos, "Go on behind the end of the text");
  app.add_option("--context", options->context,
                 "Tokens of prompt and text together; 0: what the model allows")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--chunk", options->chunk, "Prompt tokens a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  options->sampling.define(app);
  options->run.define(app);
  return [options](Console& console) { return run_generate(*options, console); };
}

}  // namespace sinter::cli
