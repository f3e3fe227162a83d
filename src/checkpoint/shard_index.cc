#include "checkpoint/shard_index.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "checkpoint/sax.h"

namespace sinter::checkpoint {
namespace {

class IndexReader : public SaxReader {
 public:
  IndexReader(std::string_view where, ShardIndex& index) : SaxReader(where), index_(index) {}
  bool has_map() const { return has_map_; }

  bool null() override { return in_map() ? SaxReader::null() : true; }
  bool boolean(bool value) override { return in_map() ? SaxReader::boolean(value) : true; }
  bool number_integer(number_integer_t value) override {
    return in_map() ? SaxReader::number_integer(value) : true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    return in_map() ? SaxReader::number_unsigned(value) : true;
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return in_map() ? SaxReader::number_float(value, text) : true;
  }
  bool start_array(size_t size) override { return in_map() ? SaxReader::start_array(size) : true; }

  bool start_object(size_t size) override {
    if (is_map_next_) {
      if (has_map_) fail("key 'weight_map'", "one", "a second one");
      has_map_ = true;
      map_depth_ = depth_ + 1;
      is_map_next_ = false;
    } else if (in_map()) {
      return SaxReader::start_object(size);
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (in_map()) map_depth_ = 0;
    --depth_;
    return true;
  }
  bool key(string_t& key) override {
    if (is_map_next_) fail("key 'weight_map'", "an object", "something else");
    key_ = key;
    is_map_next_ = depth_ == 1 && key == "weight_map";
    return true;
  }
  bool string(string_t& value) override {
    if (!in_map()) return true;
    const bool is_plain_name = !value.empty() && value.find('/') == std::string::npos && value[0] != '.' &&
                               value.find('\0') == std::string::npos;
    if (!is_plain_name)
      fail(fmt::format("tensor '{}'", key_.substr(0, 200)), "the name of a file in the same folder",
           fmt::format("\"{}\"", value.substr(0, 60)));
    index_.file_of_tensor.emplace_back(key_, value);
    return true;
  }

 private:
  bool in_map() const { return map_depth_ != 0 && depth_ == map_depth_; }
  std::pair<std::string, std::string> item_and_expected() const override {
    return {fmt::format("tensor '{}'", key_.substr(0, 200)), "the name of a file"};
  }

  ShardIndex& index_;
  std::string key_;
  int depth_ = 0, map_depth_ = 0;  // map_depth_: depth inside weight_map while there, else 0
  bool is_map_next_ = false, has_map_ = false;
};

struct ShardName {
  std::string series;  // what all shards of a model share
  int number = 0, count = 0;
};

// "model-00002-of-00005.safetensors"
std::optional<ShardName> parse_shard_name(std::string_view file) {
  constexpr size_t kDigits = 5;
  const size_t middle = file.rfind("-of-");
  if (middle == std::string_view::npos || middle < kDigits + 1 || file.size() < middle + 4 + kDigits)
    return std::nullopt;
  const auto number_at = [&](size_t begin) {
    int value = -1;
    const char* end = file.data() + begin + kDigits;
    return std::from_chars(file.data() + begin, end, value).ptr == end ? value : -1;
  };
  const ShardName name{.series = fmt::format("{}*{}", file.substr(0, middle - kDigits), file.substr(middle)),
                       .number = number_at(middle - kDigits),
                       .count = number_at(middle + 4)};
  if (name.number < 0 || name.count < 0) return std::nullopt;
  return name;
}

}  // namespace

ShardIndex parse_shard_index(std::string_view text, std::string_view where) {
  ShardIndex index;
  IndexReader reader(where, index);
  reader.read(text);
  if (!reader.has_map())
    throw Error(ErrorKind::kFormat, {.where = std::string(where),
                                     .expected = "an object with key 'weight_map'",
                                     .found = "none",
                                     .mend = {}});
  std::set<std::string> files;
  for (const auto& [tensor, file] : index.file_of_tensor) files.insert(file);
  index.files.assign(files.begin(), files.end());
  return index;
}

std::vector<std::string> list_safetensors(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  std::map<std::string, std::set<int>> numbers_of_series;
  std::map<std::string, int> count_of_series;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    const std::string file = item.path().filename().string();
    if (item.path().extension() != ".safetensors" || file[0] == '.') continue;
    files.push_back(file);
    if (const auto shard = parse_shard_name(file)) {
      numbers_of_series[shard->series].insert(shard->number);
      count_of_series[shard->series] = shard->count;
    }
  }
  for (const auto& [series, count] : count_of_series) {
    const std::set<int>& numbers = numbers_of_series[series];
    for (int number = 1; number <= count; ++number) {
      if (numbers.contains(number)) continue;
      const std::string star = fmt::format("{:05}", number);
      std::string missing = series;
      missing.replace(missing.find('*'), 1, star);
      throw Error(ErrorKind::kFile, {.where = (folder / missing).string(),
                                     .expected = fmt::format("{} shards", count),
                                     .found = fmt::format("{}, without this one", numbers.size()),
                                     .mend = "download the missing files"});
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace sinter::checkpoint
