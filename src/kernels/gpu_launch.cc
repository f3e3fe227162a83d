#include "kernels/gpu_launch.h"

#include "base/error.h"

namespace sinter::kernels {
namespace {

std::string key_of(const GpuProgram& program) {
  std::string key(program.path);
  for (const jit::Define& define : program.defines) {
    key += ' ';
    key += define.name;
    key += '=';
    key += define.value;
  }
  return key;
}

jit::Request request_of(const GpuProgram& program, const GpuDevice& device) {
  return {.path = std::string(program.path),
          .arch = device.info().arch,
          .defines = program.defines,
          .options = {}};
}

}  // namespace

struct GpuPrograms::Loaded {
  GpuModule module;
  std::map<std::string, GpuFunction> functions;
};

GpuPrograms::GpuPrograms(const GpuDevice& device, const jit::Compiler& compiler)
    : device_(device), compiler_(compiler) {}

GpuPrograms::~GpuPrograms() = default;

void GpuPrograms::load(std::span<const GpuProgram> programs,
                       const std::function<void(const jit::Progress&)>& progress) {
  std::map<std::string, jit::Request> wanted;
  for (const GpuProgram& program : programs)
    if (std::string key = key_of(program); !loaded_.contains(key))
      wanted.emplace(std::move(key), request_of(program, device_));
  std::vector<jit::Request> requests;
  requests.reserve(wanted.size());
  for (const auto& [key, request] : wanted) requests.push_back(request);
  const std::vector<jit::Outcome> outcomes = compiler_.compile_all(requests, {}, progress);
  size_t i = 0;
  for (const auto& [key, request] : wanted) {
    const jit::Outcome& outcome = outcomes[i++];
    if (outcome.error) throw *outcome.error;
    num_compiled_ += outcome.compiled->from_cache ? 0 : 1;
    loaded_.emplace(key, Loaded{GpuModule(device_, outcome.compiled->cubin, outcome.compiled->name), {}});
  }
}

const GpuFunction& GpuPrograms::function(const GpuProgram& program, const std::string& name) {
  std::string key = key_of(program);
  auto it = loaded_.find(key);
  if (it == loaded_.end()) {
    load({&program, 1});
    it = loaded_.find(key);
  }
  Loaded& loaded = it->second;
  auto function = loaded.functions.find(name);
  if (function == loaded.functions.end())
    function = loaded.functions.emplace(name, loaded.module.function(name)).first;
  return function->second;
}

}  // namespace sinter::kernels
