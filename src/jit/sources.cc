#include "jit/sources.h"

#include <algorithm>

#include "base/error.h"

namespace sinter::jit {
namespace {

constexpr std::string_view kBlanks = " \t\r";

const SourceFile* find_source(Sources sources, std::string_view path) {
  const auto found = std::ranges::find(sources, path, &SourceFile::path);
  return found == sources.end() ? nullptr : &*found;
}

const SourceFile& get_source(Sources sources, std::string_view path) {
  if (const SourceFile* file = find_source(sources, path)) return *file;
  throw Error(ErrorKind::kInternal, {.where = "device sources",
                                     .expected = fmt::format("'{}'", path),
                                     .found = fmt::format("{} files without it", sources.size()),
                                     .mend = {}});
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// What follows `#include` on a line; empty for other lines.
std::string_view include_operand(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#')) return {};
  line = trimmed(line.substr(1));
  return line.starts_with("include") ? trimmed(line.substr(7)) : std::string_view();
}

// The path in `"gpu/..."`; empty for any other operand.
std::string_view quoted_path(std::string_view operand) {
  const size_t end = operand.find('"', 1);
  if (!operand.starts_with("\"gpu/") || end == std::string_view::npos) return {};
  return operand.substr(1, end - 1);
}

}  // namespace

std::string_view embedded_source(std::string_view path) { return get_source(embedded_sources(), path).text; }

std::vector<SourceFile> with_includes(Sources sources, std::string_view path) {
  std::vector<SourceFile> files{get_source(sources, path)};
  for (size_t i = 0; i < files.size(); ++i) {
    const SourceFile file = files[i];  // by value: the list grows below
    int line_idx = 0;
    for (size_t begin = 0; begin < file.text.size(); ++line_idx) {
      const size_t end = std::min(file.text.find('\n', begin), file.text.size());
      const std::string_view operand = include_operand(file.text.substr(begin, end - begin));
      begin = end + 1;
      if (operand.empty()) continue;
      const SourceFile* header = find_source(sources, quoted_path(operand));
      if (header == nullptr)
        throw Error(ErrorKind::kInternal,
                    {.where = fmt::format("{}:{}", file.path, line_idx + 1),
                     .expected = "an include of a header in kernels/gpu, as \"gpu/<name>.h\"",
                     .found = std::string(operand),
                     .mend = "device code includes nothing else"});
      if (find_source(files, header->path) == nullptr) files.push_back(*header);
    }
  }
  return files;
}

}  // namespace sinter::jit
