#include "workbench/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <system_error>

#include "base/error.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

using models::Part;
using ops::WeightFormat;

constexpr uintmax_t kMaxSideFileBytes = uintmax_t{256} << 20;

int64_t size_bytes_of(const checkpoint::TensorSpec& tensor) {
  return tensor.shape.num_elements() * static_cast<int64_t>(size_bytes(tensor.dtype));
}

DType dtype_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32: return DType::kF32;
    case WeightFormat::kF16: return DType::kF16;
    default: return DType::kBF16;
  }
}

// ModelOpt's name for weights alone; activations stay as they are.
std::string_view quant_algo(WeightFormat format) {
  switch (format) {
    case WeightFormat::kNvfp4: return "W4A16_NVFP4";
    case WeightFormat::kMxfp4: return "MXFP4";
    case WeightFormat::kFp8Tensor: return "FP8";
    case WeightFormat::kFp8Block: return "FP8_PB_WO";
    default: return "";
  }
}

bool is_quantized(WeightFormat format) { return !quant_algo(format).empty(); }

std::vector<std::string> module_patterns(Part part) {
  const auto in_layers = [](std::initializer_list<const char*> names) {
    std::vector<std::string> patterns;
    for (const char* name : names) patterns.push_back(fmt::format("model.layers.*.{}", name));
    return patterns;
  };
  switch (part) {
    case Part::kRouted: return in_layers({"mlp.experts.*"});
    case Part::kShared: return in_layers({"mlp.shared_experts.*"});
    case Part::kDense: return in_layers({"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"});
    case Part::kAttention:
      return in_layers(
          {"self_attn.q_*", "self_attn.k_*", "self_attn.v_*", "self_attn.kv_*", "self_attn.o_*"});
    case Part::kIndexer: return in_layers({"self_attn.indexer.*"});
    case Part::kRouter: return in_layers({"mlp.gate"});
    case Part::kHead: return {"lm_head"};
    default: return {};
  }
}

Json group(WeightFormat format, const std::vector<std::string>& targets) {
  const bool is_4bit = format == WeightFormat::kNvfp4 || format == WeightFormat::kMxfp4;
  Json weights = {{"num_bits", is_4bit ? 4 : 8}, {"type", "float"}, {"dynamic", false}};
  if (is_4bit) weights["group_size"] = format == WeightFormat::kNvfp4 ? 16 : 32;
  if (format == WeightFormat::kFp8Block) weights["strategy"] = "block";
  return {{"weights", weights}, {"targets", targets}};
}

[[noreturn]] void fail_output(const fs::path& path, std::string expected, std::string found,
                              std::string mend = {}) {
  throw Error(ErrorKind::kFile, {path.string(), std::move(expected), std::move(found), std::move(mend)});
}

}  // namespace

std::vector<checkpoint::TensorSpec> stored_tensors(const models::TensorSpec& tensor, WeightFormat format) {
  const int64_t N = tensor.N, K = tensor.K;
  if (tensor.kind == models::TensorSpec::Kind::kVector) return {{tensor.name, dtype_of(format), Shape{N}}};
  if (tensor.kind == models::TensorSpec::Kind::kTable) {
    if (is_quantized(format))
      throw Error(ErrorKind::kUnsupported, {.where = tensor.name,
                                            .expected = "a table stored as bf16, f16 or f32",
                                            .found = std::string(name(format)),
                                            .mend = ""});
    return {{tensor.name, dtype_of(format), Shape{N, K}}};
  }
  const std::string weight = tensor.name + ".weight";
  const int64_t block = format == WeightFormat::kNvfp4 ? 16 : format == WeightFormat::kMxfp4 ? 32 : 1;
  if (K % block != 0)
    throw Error(ErrorKind::kUnsupported,
                {.where = weight,
                 .expected = fmt::format("a row length divisible by {} for {}", block, name(format)),
                 .found = fmt::format("{}", K),
                 .mend = "store this part in another format"});
  switch (format) {
    case WeightFormat::kNvfp4:
      return {{weight, DType::kU8, Shape{N, K / 2}},
              {weight + "_scale", DType::kF8E4M3, Shape{N, K / 16}},
              {weight + "_scale_2", DType::kF32, Shape{}}};
    case WeightFormat::kMxfp4:
      return {{weight, DType::kU8, Shape{N, K / 2}}, {weight + "_scale", DType::kU8, Shape{N, K / 32}}};
    case WeightFormat::kFp8Tensor:
      return {{weight, DType::kF8E4M3, Shape{N, K}}, {weight + "_scale", DType::kF32, Shape{}}};
    case WeightFormat::kFp8Block:
      return {{weight, DType::kF8E4M3, Shape{N, K}},
              {weight + "_scale_inv", DType::kF32, Shape{(N + 127) / 128, (K + 127) / 128}}};
    default: return {{weight, dtype_of(format), Shape{N, K}}};
  }
}

Json quantization_block(const models::DecoderSpec& spec, const StoreMap& store, bool has_more_layers) {
  std::map<WeightFormat, std::vector<std::string>> targets;
  std::vector<std::string> ignored;
  for (const Part part : {Part::kRouted, Part::kShared, Part::kDense, Part::kAttention, Part::kIndexer,
                          Part::kRouter, Part::kHead}) {
    const auto it = store.find(part);
    std::vector<std::string>& list =
        it != store.end() && is_quantized(it->second) ? targets[it->second] : ignored;
    const std::vector<std::string> patterns = module_patterns(part);
    list.insert(list.end(), patterns.begin(), patterns.end());
  }
  if (targets.empty()) return nullptr;
  if (has_more_layers)
    for (int64_t layer = spec.L; layer < spec.L + std::max<int64_t>(1, spec.num_mtp_layers); ++layer)
      ignored.push_back(fmt::format("model.layers.{}.*", layer));
  Json block = {{"quant_method", "modelopt"},
                {"quant_algo", targets.size() == 1 ? quant_algo(targets.begin()->first) : "MIXED_PRECISION"},
                {"config_groups", Json::object()},
                {"ignore", ignored},
                {"producer", {{"name", "sinter"}}}};
  for (const auto& [format, patterns] : targets)
    block["config_groups"][fmt::format("group_{}", block["config_groups"].size())] =
        targets.size() == 1 ? group(format, {"Linear"}) : group(format, patterns);
  return block;
}

Json hf_quant_config(const Json& block) {
  Json quantization = {{"quant_algo", block.at("quant_algo")},
                       {"kv_cache_quant_algo", nullptr},
                       {"exclude_modules", block.at("ignore")}};
  if (block.at("quant_algo") == "W4A16_NVFP4") quantization["group_size"] = 16;
  return {{"producer", block.at("producer")}, {"quantization", quantization}};
}

void prepare_output_folder(const fs::path& folder, int64_t needed_bytes) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    fail_output(folder, "an empty or new folder", "a file");
  if (fs::is_directory(folder, error) && !fs::is_empty(folder, error))
    fail_output(folder, "an empty or new folder", "files in it", "name another one, or remove them");
  fs::create_directories(folder, error);
  if (error) fail_output(folder, "a folder that can be made", error.message());
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < static_cast<uintmax_t>(needed_bytes))
    fail_output(folder, fmt::format("{:.3f} GB of free disk space", static_cast<double>(needed_bytes) / 1e9),
                fmt::format("{:.3f} GB", static_cast<double>(space.available) / 1e9));
}

void write_json_file(const fs::path& path, const Json& json) {
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  if (!file) fail_output(path, "a file that can be written", "an error while writing");
}

std::vector<std::string> copy_side_files(const fs::path& from, const fs::path& to) {
  std::vector<std::string> copied;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const std::string file = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    const bool is_wanted = extension == ".json" || extension == ".jinja" || extension == ".txt" ||
                           extension == ".model" || extension == ".md" || file.starts_with("LICENSE");
    if (!is_wanted || !entry.is_regular_file(error) || entry.file_size(error) > kMaxSideFileBytes) continue;
    if (file == "config.json" || file == "hf_quant_config.json" || file.ends_with(".index.json")) continue;
    fs::copy_file(entry.path(), to / file, error);
    if (error) fail_output(to / file, "a copy of " + entry.path().string(), error.message());
    copied.push_back(file);
  }
  std::ranges::sort(copied);
  return copied;
}

CheckpointWriter::CheckpointWriter(fs::path folder, std::vector<checkpoint::TensorSpec> tensors,
                                   ProgressReport progress, int64_t max_shard_bytes)
    : folder_(std::move(folder)), tensors_(std::move(tensors)), progress_(std::move(progress)) {
  int64_t shard_bytes = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const int64_t size = size_bytes_of(tensors_[i]);
    if (i == 0 || shard_bytes + size > max_shard_bytes) {
      shard_begins_.push_back(i);
      shard_bytes = 0;
    }
    shard_bytes += size;
    total_bytes_ += size;
  }
  SINTER_CHECK(!tensors_.empty(), "a checkpoint without tensors");
  tensor_bytes_left_ = size_bytes_of(tensors_.front());
  open_shard();
}

size_t CheckpointWriter::shard_end(size_t shard_idx) const {
  return shard_idx + 1 < shard_begins_.size() ? shard_begins_[shard_idx + 1] : tensors_.size();
}

std::string CheckpointWriter::shard_name(size_t shard_idx) const {
  if (shard_begins_.size() == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard_idx + 1, shard_begins_.size());
}

void CheckpointWriter::open_shard() {
  const auto begin = tensors_.begin() + static_cast<ptrdiff_t>(shard_begins_[shard_idx_]);
  const auto end = tensors_.begin() + static_cast<ptrdiff_t>(shard_end(shard_idx_));
  shard_ = std::make_unique<checkpoint::SafetensorsWriter>(
      folder_ / shard_name(shard_idx_), std::vector<checkpoint::TensorSpec>(begin, end),
      std::map<std::string, std::string>{{"format", "pt"}});
}

void CheckpointWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    SINTER_CHECK(tensor_idx_ < tensors_.size(), "more bytes than tensors");
    const size_t size = std::min(bytes.size(), static_cast<size_t>(tensor_bytes_left_));
    shard_->append(tensor_idx_ - shard_begins_[shard_idx_], bytes.first(size));
    bytes = bytes.subspan(size);
    tensor_bytes_left_ -= static_cast<int64_t>(size);
    done_bytes_ += static_cast<int64_t>(size);
    if (progress_) progress_(done_bytes_, total_bytes_);
    if (tensor_bytes_left_ > 0) continue;
    ++tensor_idx_;
    if (tensor_idx_ < tensors_.size()) tensor_bytes_left_ = size_bytes_of(tensors_[tensor_idx_]);
    if (tensor_idx_ < shard_end(shard_idx_)) continue;
    shard_->finish();
    shard_.reset();
    if (++shard_idx_ < shard_begins_.size()) open_shard();
  }
}

void CheckpointWriter::finish() {
  SINTER_CHECK(tensor_idx_ == tensors_.size(), "{} of {} tensors written", tensor_idx_, tensors_.size());
  if (shard_begins_.size() == 1) return;
  // Written as text: a hundred thousand keys are more than our ordered JSON is made for.
  std::ofstream file(folder_ / "model.safetensors.index.json");
  file << fmt::format("{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{", total_bytes_);
  for (size_t shard_idx = 0; shard_idx < shard_begins_.size(); ++shard_idx)
    for (size_t i = shard_begins_[shard_idx]; i < shard_end(shard_idx); ++i)
      file << (i == 0 ? "\n" : ",\n") << "    " << Json(tensors_[i].name).dump() << ": \""
           << shard_name(shard_idx) << '"';
  file << "\n  }\n}\n";
  file.close();
  if (!file) fail_output(folder_ / "model.safetensors.index.json", "a file that can be written", "an error");
}

}  // namespace sinter::workbench
