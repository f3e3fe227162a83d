#include "jit/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "fixture.h"

namespace sinter::jit {
namespace {

// Sets variables of the environment, and puts back what was there.
class SettingsTest : public JitTest {
 protected:
  ~SettingsTest() override {
    for (const auto& [name, value] : old_) change(name, value);
  }
  void set(const std::string& name, std::optional<std::string> value) {
    const char* old = std::getenv(name.c_str());
    old_.try_emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    change(name, value);
  }

 private:
  static void change(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> old_;
};

TEST_F(SettingsTest, CacheIsNamedOrThatOfTheUser) {
  set("SINTER_CACHE", std::nullopt);
  set("XDG_CACHE_HOME", std::nullopt);
  set("HOME", std::nullopt);
  EXPECT_EQ(settings_from_environment().cache_folder, "");
  set("HOME", "/home/me");
  EXPECT_EQ(settings_from_environment().cache_folder, "/home/me/.cache/sinter");
  set("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(settings_from_environment().cache_folder, "/home/me/.cache/sinter");
  set("XDG_CACHE_HOME", "/var/cache/me");
  EXPECT_EQ(settings_from_environment().cache_folder, "/var/cache/me/sinter");
  set("SINTER_CACHE", "/scratch/kernels");
  EXPECT_EQ(settings_from_environment().cache_folder, "/scratch/kernels");
}

TEST_F(SettingsTest, NvrtcIsNamedOrInAPython) {
  fs::create_directories(folder_ / "bin");
  std::ofstream(folder_ / "bin/python3") << "";
  set("SINTER_NVRTC", "/opt/libnvrtc.so.13");
  set("VIRTUAL_ENV", "/venv");
  set("CONDA_PREFIX", std::nullopt);
  set("PATH", "/no/such:" + (folder_ / "bin").string() + ":relative");
  set("HOME", "/home/me");
  const NvrtcPlaces places = settings_from_environment().nvrtc;
  EXPECT_EQ(places.named, "/opt/libnvrtc.so.13");
  EXPECT_EQ(places.python_prefixes, (std::vector<fs::path>{"/venv", folder_, "/home/me/.local"}));
  EXPECT_TRUE(places.loader_path);
}

}  // namespace
}  // namespace sinter::jit
