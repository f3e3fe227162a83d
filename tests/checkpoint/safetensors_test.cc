#include "checkpoint/safetensors.h"

#include <unistd.h>

#include "model_folder.h"

namespace sinter::checkpoint {
namespace {

std::string file_of(std::string_view header, size_t data_bytes, uint64_t length) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(length >> (8 * i) & 0xff);
  return file + std::string(header) + std::string(data_bytes, 'x');
}
std::string file_of(std::string_view header, size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), "f.safetensors");
}

::testing::AssertionResult refuses(const std::string& file, std::vector<std::string_view> parts) {
  parts.push_back("f.safetensors");
  return throws(ErrorKind::kFormat, std::move(parts), [&] { parse(file); });
}

TEST(Safetensors, ReadsAHeader) {
  const SafetensorsHeader header = parse(file_of(
      R"({"b": {"dtype": "F16", "shape": [2, 3], "data_offsets": [8, 20]}, "__metadata__": {"format": "pt"},
          "a": {"data_offsets": [0, 8], "shape": [], "dtype": "F64"},
          "none": {"dtype": "BF16", "shape": [0, 5], "data_offsets": [8, 8]},
          "new": {"dtype": "F2_X", "shape": [99], "data_offsets": [20, 21]}}   )",
      21));
  ASSERT_EQ(header.tensors.size(), 4u);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[1].name, "none");
  EXPECT_EQ(header.tensors[2].name, "b");
  EXPECT_EQ(header.tensors[2].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[2].begin, 8u);
  EXPECT_EQ(header.tensors[3].dtype, "F2_X");
  EXPECT_EQ(header.metadata.at("format"), "pt");
}

TEST(Safetensors, RefusesTruncatedAndLyingLengths) {
  EXPECT_TRUE(refuses("", {"0 bytes in all"}));
  EXPECT_TRUE(refuses("1234567", {"7 bytes in all"}));
  EXPECT_TRUE(refuses(file_of("{}", 0, 3), {"a header of 3 bytes", "10 bytes in all"}));
  EXPECT_TRUE(refuses(file_of("{}", 0, UINT64_MAX), {"18446744073709551615"}));
  EXPECT_TRUE(refuses(file_of("{}", 0, UINT64_MAX - 7), {"bytes in all"}));
  EXPECT_TRUE(refuses("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", {"git lfs pull"}));
  EXPECT_TRUE(refuses(file_of("{}", 4), {"expected 0 data bytes", "found 4"}));
}

TEST(Safetensors, RefusesLyingOffsets) {
  const auto one = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return fmt::format(R"({{"t": {{"dtype": "{}", "shape": {}, "data_offsets": {}}}}})", dtype, shape,
                       offsets);
  };
  EXPECT_TRUE(refuses(file_of(one("F32", "[2]", "[0, 8]"), 7), {"tensor 't'", "[0, 8]", "cut short"}));
  EXPECT_TRUE(refuses(file_of(one("F32", "[2]", "[8, 0]"), 8), {"tensor 't'", "[8, 0]"}));
  EXPECT_TRUE(
      refuses(file_of(one("F32", "[3]", "[0, 8]"), 8), {"tensor 't'", "12 bytes for F32 [3]", "found 8"}));
  EXPECT_TRUE(refuses(file_of(one("F32", "[2]", "[4, 12]"), 12), {"tensor 't'", "a hole at 4"}));
  EXPECT_TRUE(refuses(file_of(one("F4", "[3]", "[0, 2]"), 2), {"tensor 't'", "whole number of bytes"}));
  EXPECT_TRUE(
      refuses(file_of(one("F32", "[4611686018427387904, 4]", "[0, 0]"), 0), {"tensor 't'", "64 bits"}));
  EXPECT_TRUE(
      refuses(file_of(one("F32", "[9223372036854775807, 9, 0]", "[0, 0]"), 0), {"tensor 't'", "64 bits"}));
  EXPECT_TRUE(refuses(file_of(one("F32", "[2]", "[0, 18446744073709551615]"), 8), {"tensor 't'"}));
  const char* overlap = R"({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
                            "b": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}})";
  EXPECT_TRUE(refuses(file_of(overlap, 6), {"tensor 'b'", "at byte 4", "an overlap at 2"}));
}

TEST(Safetensors, RefusesMalformedHeaders) {
  for (const char* header :
       {"",
        "[]",
        "{",
        "{}}",
        "nul",
        R"({"t": 1})",
        R"({"t": {}})",
        R"({"t": {"dtype": "U8", "shape": [1]}})",
        R"({"t": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}})",
        R"({"t": {"dtype": "U8", "shape": [1.0], "data_offsets": [0, 1]}})",
        R"({"t": {"dtype": "U8", "shape": [1e3], "data_offsets": [0, 1]}})",
        R"({"t": {"dtype": "U8", "shape": [99999999999999999999], "data_offsets": [0, 1]}})",
        R"({"t": {"dtype": "U8", "shape": [[1]], "data_offsets": [0, 1]}})",
        R"({"t": {"dtype": "U8", "shape": [1], "data_offsets": [0]}})",
        R"({"t": {"dtype": "U8", "shape": [1], "data_offsets": [0, 0, 1]}})",
        R"({"t": {"dtype": 8, "shape": [1], "data_offsets": [0, 1]}})",
        R"({"t": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "extra": 1}})",
        R"({"t": {"dtype": "U8", "dtype": "I8", "shape": [1], "data_offsets": [0, 1]}})",
        R"({"__metadata__": {"k": 1}})",
        R"({"__metadata__": {}, "__metadata__": {}})",
        "{\"\xff\": {\"dtype\": \"U8\", \"shape\": [1], \"data_offsets\": [0, 1]}}"})
    EXPECT_TRUE(refuses(file_of(header, 1), {})) << header;
  const char* twice = R"({"t": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
                          "t": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})";
  EXPECT_TRUE(refuses(file_of(twice, 1), {"tensor 't'", "each name once"}));
}

TEST(Safetensors, DeepNestingEndsAtTheFirstLevelTooMany) {
  EXPECT_TRUE(refuses(file_of(R"({"t":)" + std::string(1'000'000, '['), 0), {"tensor 't'"}));
}

TEST(Safetensors, ManyTensorsTakeLinearTime) {
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i)
    header += fmt::format(R"({}"model.layers.{}.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  EXPECT_EQ(parse(file_of(header + "}", 50'000)).tensors.size(), 50'000u);
}

TEST(Safetensors, UnknownTypesAreAnErrorOnlyForWhoReadsThem) {
  const ModelFolder folder;
  folder.write("m.safetensors", file_of(R"({"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]},
      "y": {"dtype": "F2_X", "shape": [1], "data_offsets": [8, 9]}, "z": {"dtype": "U8", "shape": [1], "data_offsets": [9, 10]},
      "r": {"dtype": "U8", "shape": [1, 1, 1, 1, 1, 1, 1], "data_offsets": [10, 11]}})",
                                        11));
  const SafetensorsFile file(folder.path() / "m.safetensors");
  EXPECT_EQ(*file.at("z").data_as<uint8_t>(), 'x');
  EXPECT_TRUE(
      throws(ErrorKind::kUnsupported, {"m.safetensors: tensor 'x'", "found F64"}, [&] { file.at("x"); }));
  EXPECT_TRUE(throws(ErrorKind::kUnsupported, {"tensor 'y'", "found F2_X"}, [&] { file.at("y"); }));
  EXPECT_TRUE(throws(ErrorKind::kUnsupported, {"tensor 'r'", "found 7"}, [&] { file.at("r"); }));
  EXPECT_TRUE(throws(ErrorKind::kFormat, {"tensor 'w'"}, [&] { file.at("w"); }));
}

TEST(Safetensors, RefusesViewsOfMisalignedData) {
  const ModelFolder folder;
  std::string header = R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})";
  while (header.size() % 8 != 1) header += ' ';
  folder.write("m.safetensors", file_of(header, 4));
  const SafetensorsFile file(folder.path() / "m.safetensors");
  EXPECT_TRUE(throws(ErrorKind::kUnsupported, {"tensor 'x'", "multiple of 4"}, [&] { file.at("x"); }));
}

TEST(SafetensorsWriter, WritesWhatIsRead) {
  const ModelFolder folder;
  TensorSet set;
  set.add<uint8_t>("odd", DType::kU8, {3}, {1, 2, 3});
  set.add<uint16_t>("a \"quoted\" name", DType::kBF16, {1, 2}, {0x3f80, 0x4000});
  set.add<float>("scalar", DType::kF32, {}, {2.5f});
  set.add<uint8_t>("codes", DType::kF4E2M1x2, {2}, {0x21, 0x43});
  set.add<float>("empty", DType::kF32, {0, 7}, {});
  write_safetensors(folder.path() / "m.safetensors", set.tensors(), {{"format", "pt"}});
  const SafetensorsFile file(folder.path() / "m.safetensors");
  ASSERT_EQ(file.header().tensors.size(), 5u);
  EXPECT_EQ(file.header().metadata.at("format"), "pt");
  EXPECT_EQ(file.header().data_begin % 64, 0u);
  EXPECT_EQ(*file.at("scalar").data_as<float>(), 2.5f);
  EXPECT_EQ(file.at("odd").data_as<uint8_t>()[2], 3);
  EXPECT_EQ(file.at("a \"quoted\" name").data_as<uint16_t>()[1], 0x4000);
  EXPECT_EQ(file.at("codes").dtype(), DType::kU8);
  EXPECT_EQ(file.at("empty").shape(), (Shape{0, 7}));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "m.safetensors.part"));
}

TEST(SafetensorsWriter, LeavesNothingBehindUnlessFinished) {
  const ModelFolder folder;
  {
    SafetensorsWriter writer(folder.path() / "m.safetensors", {{"x", DType::kU8, {4}}});
    writer.append(0, std::as_bytes(std::span("ab", 2)));
    EXPECT_TRUE(throws(ErrorKind::kInternal, {"'x'", "2 of 4"}, [&] { writer.finish(); }));
    EXPECT_TRUE(
        throws(ErrorKind::kInternal, {"'x'"}, [&] { writer.append(0, std::as_bytes(std::span("abc", 3))); }));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);  // config.json
  EXPECT_TRUE(throws(ErrorKind::kUsage, {"'x' twice"}, [&] {
    SafetensorsWriter(folder.path() / "m.safetensors", {{"x", DType::kU8, {4}}, {"x", DType::kU8, {4}}});
  }));
  EXPECT_TRUE(throws(ErrorKind::kFile, {"No such file"}, [&] {
    SafetensorsWriter(folder.path() / "none" / "m.safetensors", {{"x", DType::kU8, {4}}});
  }));
}

}  // namespace
}  // namespace sinter::checkpoint
