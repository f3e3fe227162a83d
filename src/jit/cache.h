// Cubins on disk, one folder each, that many processes may read and fill at once and a person can read:
//
//   <root>/nvrtc-13.0/sm_90a/cuda.moe_ffn-<key>/
//     kernel.cubin    source.cu  gpu/*.h      what was compiled
//     command.txt     resources.json          how, and what came of it, with size and hash of the cubin
//
// An entry appears by one rename of a complete folder that is on disk: it is whole or absent, whatever
// crashes. What is damaged all the same is noticed, said once, and counts as absent.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "jit/compiled.h"
#include "jit/sources.h"

namespace sinter::jit {

class Cache {
 public:
  // An empty `root` holds nothing and takes nothing.
  explicit Cache(std::filesystem::path root) : root_(std::move(root)) {}

  struct Id {
    std::string_view arch, name, key;
  };

  // The entry that compiler `version` ("13.0") made; an empty `version`: the one of the newest compiler that
  // has it. Reads and checks the whole cubin.
  std::optional<Compiled> find(std::string_view version, const Id& id) const;

  // Keeps `compiled`. `files`: the program and its headers; `command`: how to repeat the compile. A folder
  // that cannot be written is said once and otherwise without consequence.
  void store(std::string_view version, const Id& id, const Compiled& compiled,
             std::span<const SourceFile> files, std::string_view command) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::optional<Compiled> read(const std::filesystem::path& entry, const Id& id) const;
  void remove_leftovers() const;

  std::filesystem::path root_;
  mutable std::once_flag leftovers_removed_;
};

}  // namespace sinter::jit
