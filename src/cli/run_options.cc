#include "cli/run_options.h"

#include "cli/model_option.h"
#include "cli/verb.h"
#include "kernels/kernel.h"
#include "workbench/random_weights.h"

namespace sinter::cli {

void RunOptions::define(CLI::App& app) {
  app.add_option("--device", device,
                 "Where to compute: cpu, gpu, gpu:N; auto: a GPU that can be used, or the CPU")
      ->capture_default_str();
  app.add_option("--random-weights", random_weights,
                 "Seed of random weights, for a folder with config.json alone")
      ->check(check_seed);
  app.add_option("--threads", num_threads, "Threads; 0: one per core")->check(CLI::Range(0, 4096));
  app.add_flag("--reference", reference, "Plain float32 kernels on the CPU only: slow, exact");
  app.add_flag("--no-pack", no_pack, "Use the weights where they are mapped");
  app.add_option("--moe-backend", moe_backend, "Kernel or backend for routed experts (see `sinter kernels`)");
  app.add_option("--linear-backend", linear_backend, "Kernel or backend for matrix products");
  app.add_option("--attention-backend", attention_backend, "Kernel or backend for attention");
}

void RunOptions::check() const { (void)workbench::parse_device(device); }

void RunOptions::check_weights(const workbench::ModelFolder& folder) const {
  if (!random_weights) folder.require_weights();
}

workbench::Session RunOptions::load(workbench::ModelFolder folder, const Console& console, int64_t chunk,
                                    int64_t context) const {
  workbench::SessionOptions options;
  options.device = workbench::parse_device(device);
  options.chunk = chunk;
  options.dispatch.context = context;
  options.num_threads = num_threads;
  options.dispatch.reference = reference;
  options.dispatch.pack_weights = !no_pack;
  if (!moe_backend.empty()) options.dispatch.forced[ops::Op::kMoeFfn] = moe_backend;
  if (!linear_backend.empty()) options.dispatch.forced[ops::Op::kLinear] = linear_backend;

  if (!attention_backend.empty()) {
    const bool is_mla = std::holds_alternative<models::MlaSpec>(folder.spec.attention);
    options.dispatch.forced[is_mla ? ops::Op::kMlaAttention : ops::Op::kGqaAttention] = attention_backend;
  }
  if (random_weights) {
    Progress writing(console, "random weights");
    folder = workbench::with_random_weights(folder, *random_weights, writing.callback());
  }
  Progress compiling(console, "compiling");
  options.compile_progress = compiling.callback();
  Progress progress(console, "loading");
  options.progress.report = [&](int64_t done, int64_t total) {
    compiling.clear();
    progress.report(done, total);
  };
  return workbench::Session(std::move(folder), options);
}

}  // namespace sinter::cli
