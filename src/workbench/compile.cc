#include "workbench/compile.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.h"
#include "dispatch/dispatch.h"
#include "workbench/model_problems.h"

namespace sinter::workbench {

CompileResult compile_model(const ModelFolder& folder, const Inventory& inventory,
                            const CompileOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  ThreadPool pool(1);
  const dispatch::Context context(device_info(*options.arch), pool);
  const int64_t num_tokens = std::min(options.context, folder.spec.max_positions);
  const std::vector<ops::Problem> problems =
      run_problems(folder.spec, inventory, std::min(options.chunk, num_tokens), num_tokens);
  std::vector<jit::Request> requests;
  std::set<std::string> keys;
  for (kernels::GpuProgram& program : context.programs(problems)) {
    jit::Request request{.path = std::string(program.path),
                         .arch = options.arch,
                         .defines = std::move(program.defines),
                         .options = {}};
    if (keys.insert(jit::key_of(request)).second) requests.push_back(std::move(request));
  }

  const jit::Compiler compiler;
  const std::vector<jit::Outcome> outcomes = compiler.compile_all(
      requests, {.num_threads = options.num_threads}, [&](const jit::Progress& progress) {
        if (options.progress)
          options.progress(static_cast<int64_t>(progress.num_done), static_cast<int64_t>(progress.num_total));
      });
  CompileResult result{.cache_folder = compiler.cache().root().string()};
  for (const jit::Outcome& outcome : outcomes) {
    if (outcome.error) throw Error(*outcome.error);
    ++(outcome.compiled->from_cache ? result.num_cached : result.num_compiled);
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace sinter::workbench
