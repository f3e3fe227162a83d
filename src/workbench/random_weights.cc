#include "workbench/random_weights.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace fs = std::filesystem;

namespace sinter::workbench {
namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    path_ = fs::temp_directory_path(error) / "sinter-random-XXXXXX";
    std::string name = path_.string();
    if (error || ::mkdtemp(name.data()) == nullptr)
      throw Error(ErrorKind::kFile, {.where = path_.string(),
                                     .expected = "a new folder",
                                     .found = error ? error.message() : std::strerror(errno),
                                     .mend = "TMPDIR names another place"});
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

ModelFolder with_random_weights(const ModelFolder& config, uint64_t seed, const ProgressReport& progress) {
  if (config.checkpoint.has_weights())
    throw Error(ErrorKind::kUsage, {.where = "--random-weights",
                                    .expected = "a folder with config.json alone",
                                    .found = config.path().string() + ", which has weights",
                                    .mend = ""});
  const TemporaryFolder folder;
  synthesize(config,
             {.out = folder.path(), .seed = seed, .store = {}, .num_layers = 0, .progress = progress});
  return open_model_folder(folder.path().string());
}

}  // namespace sinter::workbench
