#include "jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <random>
#include <system_error>

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"
#include "base/log.h"
#include "jit/sha256.h"

namespace sinter::jit {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kVersionPrefix = "nvrtc-";
constexpr std::string_view kUnfinishedPrefix = ".unfinished-";
constexpr int64_t kMaxCubinBytes = int64_t{1} << 30;

// Throws std::system_error, which store() turns into one warning.
void require(bool ok, const fs::path& path) {
  if (!ok) throw std::system_error(errno, std::generic_category(), path.string());
}

// Closes `fd` once its data, or a folder's list of names, is on disk. Some file systems cannot sync folders.
void sync_and_close(int fd, bool ok, const fs::path& path) {
  ok = ok && (::fsync(fd) == 0 || errno == EINVAL);
  const int error = errno;
  ::close(fd);
  errno = error;
  require(ok, path);
}

void sync_folder(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require(fd >= 0, path);
  sync_and_close(fd, true, path);
}

void write_file(const fs::path& path, std::string_view content) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  require(fd >= 0, path);
  bool ok = true;
  while (ok && !content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    ok = written > 0;
    if (ok) content.remove_prefix(static_cast<size_t>(written));
  }
  sync_and_close(fd, ok, path);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A name that no other process uses, on this machine or another that shares the folder. A generator kept from
// call to call would give the children of a fork the same names.
fs::path unfinished_path(const fs::path& folder) {
  std::random_device random;
  return folder / fmt::format("{}{:08x}{:08x}", kUnfinishedPrefix, random(), random());
}

// (13, 0) of "nvrtc-13.0"; none for other names.
std::optional<std::pair<int, int>> compiler_version(const std::string& folder) {
  if (!folder.starts_with(kVersionPrefix)) return std::nullopt;
  const char* begin = folder.data() + kVersionPrefix.size();
  const char* end = folder.data() + folder.size();
  std::pair<int, int> version;
  const auto major = std::from_chars(begin, end, version.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  if (minor.ec != std::errc() || minor.ptr != end) return std::nullopt;
  return version;
}

std::vector<fs::path> compiler_folders(const fs::path& root) {
  std::vector<std::pair<std::pair<int, int>, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error))
    if (const auto version = compiler_version(it->path().filename().string()))
      found.emplace_back(*version, it->path());
  std::ranges::sort(found, std::greater());
  std::vector<fs::path> folders;
  folders.reserve(found.size());
  for (auto& [version, path] : found) folders.push_back(std::move(path));
  return folders;
}

std::string entry_name(const Cache::Id& id) { return fmt::format("{}-{}", id.name, id.key); }

std::string resources_json(const Compiled& compiled) {
  Json kernels = Json::array();
  for (const KernelResources& kernel : compiled.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"registers", kernel.registers},
                       {"shared_bytes", kernel.shared_bytes},
                       {"stack_bytes", kernel.stack_bytes},
                       {"spill_store_bytes", kernel.spill_store_bytes},
                       {"spill_load_bytes", kernel.spill_load_bytes}});
  const Json json{{"cubin_bytes", compiled.cubin.size()},
                  {"cubin_sha256", sha256_hex(compiled.cubin)},
                  {"kernels", std::move(kernels)},
                  {"log", compiled.log}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Throws Error when the entry is not as resources_json() and store() leave it.
Compiled read_entry(const fs::path& entry, const Cache::Id& id) {
  const fs::path report_path = entry / "resources.json";
  const Json report_json = parse_json(read_text_file(report_path), report_path.string());
  const JsonObject report(report_json, report_path.string());
  const FileMap cubin(entry / "kernel.cubin");
  const int64_t num_bytes = report.get_int("cubin_bytes", 1, kMaxCubinBytes);
  if (static_cast<int64_t>(cubin.bytes().size()) != num_bytes)
    throw Error(ErrorKind::kFormat, {.where = cubin.path().string(),
                                     .expected = fmt::format("{} bytes", num_bytes),
                                     .found = fmt::format("{}", cubin.bytes().size()),
                                     .mend = {}});
  if (sha256_hex(cubin.bytes()) != report.get_string("cubin_sha256"))
    throw Error(ErrorKind::kFormat, {.where = cubin.path().string(),
                                     .expected = "the SHA-256 in resources.json",
                                     .found = "another",
                                     .mend = {}});
  Compiled compiled{.name = std::string(id.name),
                    .key = std::string(id.key),
                    .cubin = {cubin.bytes().begin(), cubin.bytes().end()},
                    .log = report.get_string("log"),
                    .kernels = {},
                    .from_cache = true};
  for (const Json& item : report.at("kernels")) {
    const JsonObject kernel(item, report.where("kernels"));
    const auto bytes = [&](const char* key) { return kernel.get_int(key, 0, kMaxCubinBytes); };
    compiled.kernels.push_back({.name = kernel.get_string("name"),
                                .registers = static_cast<int>(kernel.get_int("registers", 0, 65536)),
                                .shared_bytes = bytes("shared_bytes"),
                                .stack_bytes = bytes("stack_bytes"),
                                .spill_store_bytes = bytes("spill_store_bytes"),
                                .spill_load_bytes = bytes("spill_load_bytes")});
  }
  return compiled;
}

void write_entry(const fs::path& folder, const Compiled& compiled, std::span<const SourceFile> files,
                 std::string_view command) {
  write_file(folder / "source.cu", files.front().text);
  for (const SourceFile& header : files.subspan(1)) {
    const fs::path path = folder / header.path;
    fs::create_directories(path.parent_path());
    write_file(path, header.text);
  }
  write_file(folder / "command.txt", command);
  write_file(folder / "kernel.cubin", text_of(compiled.cubin));
  write_file(folder / "resources.json", resources_json(compiled));
  sync_folder(folder);
}

}  // namespace

std::optional<Compiled> Cache::read(const fs::path& entry, const Id& id) const {
  std::error_code error;
  if (!fs::exists(entry, error)) return std::nullopt;
  try {
    return read_entry(entry, id);
  } catch (const Error& damage) {
    log_once(LogLevel::kWarning,
             fmt::format("a cached kernel is damaged and counts as absent: {}", damage.what()));
    return std::nullopt;
  }
}

std::optional<Compiled> Cache::find(std::string_view version, const Id& id) const {
  if (root_.empty()) return std::nullopt;
  const fs::path below = fs::path(id.arch) / entry_name(id);
  if (!version.empty()) return read(root_ / fmt::format("{}{}", kVersionPrefix, version) / below, id);
  for (const fs::path& folder : compiler_folders(root_))
    if (std::optional<Compiled> compiled = read(folder / below, id)) return compiled;
  return std::nullopt;
}

void Cache::store(std::string_view version, const Id& id, const Compiled& compiled,
                  std::span<const SourceFile> files, std::string_view command) const {
  if (root_.empty()) return;
  const fs::path folder = root_ / fmt::format("{}{}", kVersionPrefix, version) / id.arch;
  const fs::path entry = folder / entry_name(id);
  fs::path unfinished;
  try {
    fs::create_directories(folder);
    std::call_once(leftovers_removed_, [this] { remove_leftovers(); });
    const fs::path fresh = unfinished_path(folder);
    require(::mkdir(fresh.c_str(), 0777) == 0, fresh);
    unfinished = fresh;
    write_entry(unfinished, compiled, files, command);
    if (::rename(unfinished.c_str(), entry.c_str()) != 0) {
      require(errno == EEXIST || errno == ENOTEMPTY, entry);
      // Another process was first, or the entry is damaged: then its folder goes before ours comes. Who looks
      // in between finds nothing and compiles.
      const fs::path old = unfinished_path(folder);
      const bool is_whole = read(entry, id).has_value();
      if (!is_whole && ::rename(entry.c_str(), old.c_str()) == 0) fs::remove_all(old);
      if (is_whole || ::rename(unfinished.c_str(), entry.c_str()) != 0) fs::remove_all(unfinished);
    }
    sync_folder(folder);
  } catch (const std::system_error& error) {
    std::error_code ignored;
    if (!unfinished.empty()) fs::remove_all(unfinished, ignored);
    log_once(
        LogLevel::kWarning,
        fmt::format("the kernel cache {} cannot be written, kernels are compiled at every start: {} (let "
                    "SINTER_CACHE name a folder that can)",
                    root_.string(), error.code().message()));
  }
}

// What processes that died have left: unfinished folders that nobody has touched for a day.
void Cache::remove_leftovers() const {
  const auto limit = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code error;
  for (const fs::path& compiler : compiler_folders(root_))
    for (fs::recursive_directory_iterator it(compiler, error), end; !error && it != end;
         it.increment(error)) {
      if (it.depth() == 1) it.disable_recursion_pending();
      std::error_code ignored;
      if (it->path().filename().string().starts_with(kUnfinishedPrefix) &&
          it->last_write_time(ignored) < limit)
        fs::remove_all(it->path(), ignored);
    }
}

}  // namespace sinter::jit
