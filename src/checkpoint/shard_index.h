// Which safetensors files a model folder consists of.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinter::checkpoint {

// model.safetensors.index.json: tensor name -> file name, in file order.
struct ShardIndex {
  std::vector<std::pair<std::string, std::string>> file_of_tensor;
  std::vector<std::string> files;  // each once, sorted
};

// Throws Error(kFormat); also for a file name that leads out of the folder.
ShardIndex parse_shard_index(std::string_view text, std::string_view where);

// Every *.safetensors of a folder, sorted. Throws Error(kFile) when names like
// "model-00002-of-00005.safetensors" show that some are missing.
std::vector<std::string> list_safetensors(const std::filesystem::path& folder);

}  // namespace sinter::checkpoint
