#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config_json.h"
#include "checkpoint/shard_index.h"
#include "numerics/bf16.h"
#include "numerics/fp16.h"
#include "tensor/buffer.h"

namespace sinter::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = size_t{256} << 20;

std::string_view name_of(const Checkpoint::Stored& stored) { return stored.entry->name; }

[[noreturn]] void fail(ErrorKind kind, std::string where, std::string expected, std::string found,
                       std::string mend = {}) {
  throw Error(kind, {std::move(where), std::move(expected), std::move(found), std::move(mend)});
}

void convert_to_f32(const TensorView& source, std::span<float> values) {
  const auto* bits = source.data_as<uint16_t>();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = source.dtype() == DType::kBF16 ? numerics::from_bf16(bits[i]) : numerics::from_fp16(bits[i]);
}

}  // namespace

struct Checkpoint::Contents {
  fs::path folder;
  Json config, generation_config, quantization_config;  // null when absent
  std::deque<SafetensorsFile> files;
  std::vector<Stored> tensors;  // by name

  std::mutex mutex;
  std::map<std::string, Buffer, std::less<>> converted;  // of at_f32

  void read_configs();
  void read_tensors();
  const Stored* find(std::string_view name) const;

 private:
  void open_files(const std::vector<std::string>& file_names);
  void check_index(const ShardIndex& index, const std::string& where) const;
};

void Checkpoint::Contents::read_configs() {
  config = read_config(folder / "config.json");
  const auto read_if_there = [&](const char* file) {
    return fs::exists(folder / file) ? read_config(folder / file) : Json();
  };
  generation_config = read_if_there("generation_config.json");
  const Json hf_quant_config = read_if_there("hf_quant_config.json");
  if (const auto it = config.find("quantization_config"); it != config.end() && !it->is_null()) {
    if (!it->is_object())
      throw Error(ErrorKind::kFormat, {.where = (folder / "config.json").string() + ": quantization_config",
                                       .expected = "an object",
                                       .found = it->type_name(),
                                       .mend = {}});
    quantization_config = *it;
  } else if (const auto inner =
                 hf_quant_config.is_object() ? hf_quant_config.find("quantization") : hf_quant_config.end();
             inner != hf_quant_config.end() && inner->is_object())
    quantization_config = *inner;
}

void Checkpoint::Contents::read_tensors() {
  const fs::path index_path = folder / "model.safetensors.index.json";
  std::vector<std::string> extra = list_safetensors(folder);
  if (!fs::exists(index_path)) {
    open_files(extra);
    return;
  }
  const ShardIndex index = parse_shard_index(read_text_file(index_path, kMaxIndexBytes), index_path.string());
  for (const std::string& file : index.files)
    if (!fs::exists(folder / file))
      fail(ErrorKind::kFile, (folder / file).string(), "a shard that the index names", "no such file",
           "download the missing files");
  std::erase_if(extra,
                [&](const std::string& file) { return std::ranges::binary_search(index.files, file); });
  open_files(index.files);
  check_index(index, index_path.string());
  open_files(extra);
}

// Adds their tensors, except those that earlier files hold.
void Checkpoint::Contents::open_files(const std::vector<std::string>& file_names) {
  std::vector<Stored> added;
  for (const std::string& file_name : file_names) {
    const SafetensorsFile& file = files.emplace_back(folder / file_name);
    for (const TensorEntry& entry : file.header().tensors)
      if (find(entry.name) == nullptr) added.push_back({&entry, &file});
  }
  std::ranges::stable_sort(added, {}, name_of);
  const auto twin = std::ranges::adjacent_find(added, {}, name_of);
  if (twin != added.end())
    fail(ErrorKind::kFormat, twin->file->where(name_of(*twin)), "each tensor in one file",
         fmt::format("it also in {}", twin[1].file->path().filename().string()),
         "remove the file that does not belong to the model");
  tensors.insert(tensors.end(), added.begin(), added.end());
  std::ranges::sort(tensors, {}, name_of);
}

void Checkpoint::Contents::check_index(const ShardIndex& index, const std::string& where) const {
  for (const auto& [tensor, file] : index.file_of_tensor) {
    const Stored* stored = find(tensor);
    if (stored != nullptr && stored->file->path().filename() == file) continue;
    fail(ErrorKind::kFormat, fmt::format("{}: tensor '{}'", where, tensor), "it in " + file,
         stored == nullptr ? "no such tensor" : "it in " + stored->file->path().filename().string());
  }
}

const Checkpoint::Stored* Checkpoint::Contents::find(std::string_view name) const {
  const auto it = std::ranges::lower_bound(tensors, name, {}, name_of);
  return it == tensors.end() || name_of(*it) != name ? nullptr : &*it;
}

Checkpoint::Checkpoint(fs::path folder) : contents_(std::make_unique<Contents>()) {
  try {
    if (!fs::is_directory(folder))
      fail(ErrorKind::kFile, folder.string(), "a model folder with config.json",
           fs::exists(folder) ? "a file" : "no such folder");
    contents_->folder = std::move(folder);
    contents_->read_configs();
    contents_->read_tensors();
  } catch (const fs::filesystem_error& error) {
    fail(ErrorKind::kFile, error.path1().string(), "a readable file", error.code().message());
  }
}

Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

const fs::path& Checkpoint::folder() const { return contents_->folder; }
const Json& Checkpoint::config() const { return contents_->config; }
std::string Checkpoint::config_where() const { return (folder() / "config.json").string(); }
const Json* Checkpoint::generation_config() const {
  return contents_->generation_config.is_null() ? nullptr : &contents_->generation_config;
}
const Json* Checkpoint::quantization_config() const {
  return contents_->quantization_config.is_null() ? nullptr : &contents_->quantization_config;
}
const std::vector<Checkpoint::Stored>& Checkpoint::tensors() const { return contents_->tensors; }
const Checkpoint::Stored* Checkpoint::find(std::string_view name) const { return contents_->find(name); }

uint64_t Checkpoint::total_bytes() const {
  uint64_t total = 0;
  for (const Stored& stored : tensors()) total += stored.entry->size_bytes();
  return total;
}

std::string Checkpoint::where(std::string_view name) const {
  const Stored* stored = find(name);
  return stored != nullptr ? stored->file->where(name)
                           : fmt::format("{}: tensor '{}'", folder().string(), name);
}

TensorView Checkpoint::at(std::string_view name) const {
  const Stored* stored = find(name);
  if (stored == nullptr)
    fail(ErrorKind::kFormat, where(name), "a tensor of this name",
         has_weights() ? "none" : "no safetensors file at all");
  return stored->file->view(*stored->entry);
}

TensorView Checkpoint::at(std::string_view name, const Shape& expected) const {
  TensorView view = at(name);
  if (!(view.shape() == expected))
    fail(ErrorKind::kFormat, where(name), "shape " + expected.to_string(), view.shape().to_string());
  return view;
}

TensorView Checkpoint::at_f32(std::string_view name, const Shape& expected) const {
  const TensorView view = at(name, expected);
  if (view.dtype() == DType::kF32) return view;
  if (view.dtype() != DType::kBF16 && view.dtype() != DType::kF16)
    fail(ErrorKind::kFormat, where(name), "F32, BF16 or F16", find(name)->entry->dtype);
  const std::lock_guard lock(contents_->mutex);
  const auto kept = contents_->converted.find(name);
  if (kept != contents_->converted.end()) return kept->second.view(DType::kF32, expected);
  Buffer buffer = Buffer::host(static_cast<size_t>(view.num_elements()) * sizeof(float));
  const TensorView result = buffer.view(DType::kF32, expected);
  convert_to_f32(view, {result.data_as<float>(), static_cast<size_t>(result.num_elements())});
  contents_->converted.emplace(name, std::move(buffer));
  return result;
}

}  // namespace sinter::checkpoint
