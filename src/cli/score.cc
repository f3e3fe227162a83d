#include "workbench/score.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file_map.h"
#include "cli/model_option.h"
#include "cli/run_options.h"
#include "cli/verb.h"
#include "engine/generator.h"

namespace sinter::cli {

namespace {

// Writing must not replace what is read.
void check_logits_path(const std::filesystem::path& logits, const std::filesystem::path& input,
                       const std::filesystem::path& model) {
  std::error_code ignored;
  const bool is_input = std::filesystem::equivalent(logits, input, ignored);
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(logits), ignored).parent_path();
  if (is_input || std::filesystem::equivalent(folder, model, ignored))
    throw Error(ErrorKind::kUsage, {.where = "--logits " + logits.string(),
                                    .expected = "a file outside of the model and not the input",
                                    .found = is_input ? "the input" : "a file in the model's folder",
                                    .mend = {}});
}

}  // namespace

std::function<int(Console&)> define_score(CLI::App& app) {
  struct Options {
    std::string model, tokens_path, text_path, logits_path;
    int64_t chunk = 512, window = 0;
    RunOptions run;
  };
  const auto options = std::make_shared<Options>();
  add_model(app, options->model);
  auto* input = app.add_option_group("input");
  input->add_option("--tokens", options->tokens_path, "File with a JSON array of token ids");
  input->add_option("--text", options->text_path, "File with text");
  input->require_option(1);
  app.add_option("--logits", options->logits_path, "Write logits here: safetensors, float32 [T, V]");
  app.add_option("--chunk", options->chunk, "Tokens a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--window", options->window,
                 "Cut into windows of N tokens that do not see each other; 0: one piece")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  options->run.define(app);
  return [options](Console& console) {
    options->run.check();
    std::vector<int32_t> ids;
    if (!options->tokens_path.empty()) ids = workbench::read_token_file(options->tokens_path);
    std::string text;
    if (!options->text_path.empty()) text = read_text_file(options->text_path);
    workbench::ModelFolder folder = workbench::open_model_folder(options->model);
    options->run.check_weights(folder);
    const std::string& where = options->tokens_path.empty() ? options->text_path : options->tokens_path;
    if (!options->logits_path.empty()) check_logits_path(options->logits_path, where, folder.path());
    if (!options->text_path.empty()) ids = workbench::load_tokenizer(folder).encode_prompt(text);
    engine::check_token_ids(ids, folder.spec.V, where);
    const auto num_ids = static_cast<int64_t>(ids.size());
    const int64_t context = options->window > 0 ? std::min(options->window, num_ids) : num_ids;
    workbench::Session session = options->run.load(std::move(folder), console, options->chunk, context);

    workbench::ScoreOptions score_options{.chunk = options->chunk, .window = options->window, .where = where};
    if (!options->logits_path.empty()) score_options.logits_path = options->logits_path;
    Progress progress(console, "scoring");
    score_options.progress = progress.callback();
    const workbench::ScoreResult result = workbench::score(session, ids, score_options);
    if (console.json) {
      console.emit({{"num_tokens", result.num_tokens},
                    {"num_predicted", result.num_predicted},
                    {"nll", result.nll},
                    {"perplexity", result.perplexity},
                    {"logprobs", result.logprobs}});
    } else {
      console.print(fmt::format("tokens      {}\nnll         {:.6f} nats a token\nperplexity  {:.4f}\n",
                                result.num_tokens, result.nll, result.perplexity));
    }
    return kOk;
  };
}

}  // namespace sinter::cli
