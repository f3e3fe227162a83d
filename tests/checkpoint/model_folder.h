// A model folder made for one test, removed with it.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/safetensors_writer.h"
#include "tensor/buffer.h"

namespace sinter::checkpoint {

class ModelFolder {
 public:
  ModelFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinter-checkpoint-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
    write("config.json", R"({"model_type": "any"})");
  }
  ~ModelFolder() { std::filesystem::remove_all(path_); }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(std::string_view file, std::string_view text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

// Tensors with memory of their own, to be written to a file.
class TensorSet {
 public:
  template <typename T>
  TensorSet& add(std::string name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto& buffer =
        buffers_.emplace_back(std::make_shared<Buffer>(Buffer::host(values.size() * sizeof(T))));
    std::copy(values.begin(), values.end(), reinterpret_cast<T*>(buffer->data()));
    tensors_.push_back({std::move(name), buffer->view(dtype, shape)});
    return *this;
  }
  // All elements the same.
  template <typename T>
  TensorSet& fill(std::string name, DType dtype, const Shape& shape, T value) {
    return add(std::move(name), dtype, shape,
               std::vector<T>(static_cast<size_t>(shape.num_elements()), value));
  }
  void write(const std::filesystem::path& path) const { write_safetensors(path, tensors_); }
  const std::vector<NamedTensor>& tensors() const { return tensors_; }

 private:
  std::vector<std::shared_ptr<Buffer>> buffers_;  // shared by copies of the set
  std::vector<NamedTensor> tensors_;
};

// Runs `action`, which must throw Error(kind) with a message that holds every one of `parts`.
template <typename Action>
::testing::AssertionResult throws(ErrorKind kind, std::vector<std::string_view> parts, Action action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (error.kind() != kind) return ::testing::AssertionFailure() << name(error.kind()) << ": " << message;
    for (const std::string_view part : parts)
      if (message.find(part) == std::string_view::npos)
        return ::testing::AssertionFailure() << "no '" << part << "' in: " << message;
    return ::testing::AssertionSuccess() << message;
  }
  return ::testing::AssertionFailure() << "nothing thrown";
}

}  // namespace sinter::checkpoint
