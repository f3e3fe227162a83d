#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "text/byte_level.h"
#include "text/incremental_decoder.h"
#include "text/utf8.h"

namespace sinter::text {
namespace {

using Ids = std::vector<int32_t>;

// Bytes have their value as id; "he" 256, "hello" by he+l, hel+lo; " w" 260.
Json small_file() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    append_utf8(token, byte_level_character(static_cast<unsigned char>(byte)));
    vocab[token] = byte;
  }
  int id = 256;
  for (const char* token : {"he", "lo", "hel", "hello", "Ġw"}) vocab[token] = id++;
  Json file = Json::parse(R"({
    "version": "1.0",
    "added_tokens": [{"id": 261, "content": "<|end|>", "special": true, "normalized": false},
                     {"id": 300, "content": "<think>", "special": false, "normalized": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": [["h", "e"], ["l", "o"], ["he", "l"], ["hel", "lo"], ["\u0120", "w"]]}})");
  file["model"]["vocab"] = vocab;
  return file;
}

Tokenizer parse(const Json& file, std::string_view config = {}) {
  return Tokenizer::parse(file.dump(), "tokenizer.json", config);
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    return error.what();
  }
  return "no error";
}

// What a changed file is refused with.
std::string refusal(const std::function<void(Json&)>& change) {
  Json file = small_file();
  change(file);
  return error_of([&] { parse(file); });
}

Json split_by(const std::string& pattern) {
  Json json = Json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  json["pretokenizers"][0]["pattern"]["Regex"] = pattern;
  return json;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Tokenizer, MergesInOrderOfRank) {
  const Tokenizer tokenizer = parse(small_file());
  EXPECT_EQ(tokenizer.vocab_size(), 301);
  EXPECT_EQ(tokenizer.encode("hello"), (Ids{259}));
  EXPECT_EQ(tokenizer.encode("hell world"), (Ids{258, 'l', 260, 'o', 'r', 'l', 'd'}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Tokenizer, AddedTokensAreFoundAndSpecialOnesCanBeText) {
  const Tokenizer tokenizer = parse(small_file());
  EXPECT_EQ(tokenizer.encode("lo<think><|end|>"), (Ids{257, 300, 261}));
  const Ids plain = tokenizer.encode("<|end|><think>", false);
  EXPECT_EQ(plain.size(), std::string("<|end|>").size() + 1);
  EXPECT_EQ(plain.back(), 300);
  EXPECT_TRUE(tokenizer.is_special(261));
  EXPECT_FALSE(tokenizer.is_special(300));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_EQ(tokenizer.token_to_id("<|end|>"), 261);
  EXPECT_EQ(tokenizer.token_to_id("Ġw"), 260);
  EXPECT_EQ(tokenizer.token_bytes(260), " w");
  EXPECT_EQ(tokenizer.decode(Ids{259, 261, 260}, true), "hello w");
  EXPECT_EQ(tokenizer.decode(Ids{259, 261, 260}, false), "hello<|end|> w");
}

TEST(Tokenizer, IdsWithoutTokenGiveNothing) {
  const Tokenizer tokenizer = parse(small_file());
  EXPECT_EQ(tokenizer.decode(Ids{'a', 270, 100000, 'b'}), "ab");
  EXPECT_HAS(error_of([&] { tokenizer.decode(Ids{-1}); }), "an id of 0 or more, found -1");
}

TEST(Tokenizer, InvalidUtf8CountsAsReplacementCharacters) {
  const Tokenizer tokenizer = parse(small_file());
  // By maximal subparts: F0 9F | C0 | AF | E2 82 | a.
  const Ids replaced = {0xEF, 0xBF, 0xBD};
  Ids expected;
  for (int i = 0; i < 4; ++i) expected.insert(expected.end(), replaced.begin(), replaced.end());
  expected.push_back('a');
  EXPECT_EQ(tokenizer.encode("\xF0\x9F\xC0\xAF\xE2\x82"
                             "a"),
            expected);
}

TEST(Tokenizer, LongPiecesMergeAsShortOnes) {
  // The heap and the scan have to agree: "ab" pairs from the left whatever the length.
  Json file = small_file();
  file["model"]["vocab"]["aa"] = 262;
  file["model"]["vocab"]["aaaa"] = 263;
  file["model"]["merges"] = Json::array({"a a", "aa aa"});
  const Tokenizer tokenizer = parse(file);
  for (const size_t size : {7, 48, 49, 100001}) {
    Ids expected(size / 4, 263);
    if (size % 4 >= 2) expected.push_back(262);
    if (size % 2 == 1) expected.push_back('a');
    EXPECT_EQ(tokenizer.encode(std::string(size, 'a')), expected) << size;
  }
}

TEST(Tokenizer, BosComesFromTheConfigOrThePostProcessor) {
  Json file = small_file();
  EXPECT_EQ(parse(file).encode_prompt("lo"), (Ids{257}));
  file["post_processor"] = Json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [261], "tokens": ["<|end|>"]}}})");
  EXPECT_EQ(parse(file).encode_prompt("lo"), (Ids{261, 257}));
  EXPECT_EQ(parse(file).encode("lo"), (Ids{257}));
  const Tokenizer with_config =
      parse(file, R"({"add_bos_token": true, "bos_token": {"content": "<think>"}, "eos_token": "<|end|>"})");
  EXPECT_EQ(with_config.encode_prompt("lo"), (Ids{300, 257}));
  EXPECT_EQ(with_config.named_tokens().at("eos_token"), "<|end|>");
  EXPECT_EQ(with_config.named_tokens().at("bos_token"), "<think>");
  EXPECT_EQ(parse(file, R"({"add_bos_token": false})").encode_prompt("lo"), (Ids{257}));
  EXPECT_HAS(error_of([&] { parse(file, R"({"add_bos_token": true, "bos_token": "<nope>"})"); }), "'<nope>'");
  file["post_processor"]["special_tokens"]["<|end|>"]["ids"] = {290};
  EXPECT_HAS(error_of([&] { parse(file); }), "post_processor: expected ids of tokens, found 290");
}

TEST(Tokenizer, TokensOfTheConfigAreAdded) {
  const Tokenizer tokenizer =
      parse(small_file(), R"({"added_tokens_decoder": {"261": {"content": "<|end|>", "special": true},
                                                 "305": {"content": "<new>", "special": true, "normalized": false}}})");
  EXPECT_EQ(tokenizer.encode("<new>"), (Ids{305}));
  EXPECT_HAS(error_of([] { parse(small_file(), R"({"added_tokens_decoder": {"x": {"content": "a"}}})"); }),
             "'x'");
  EXPECT_HAS(error_of([] { parse(small_file(), R"({"added_tokens_decoder": {"261": {"content": "a"}}})"); }),
             "id 97");
}

TEST(Tokenizer, EveryByteNeedsATokenOnlyWhenItOccurs) {
  Json file = small_file();
  file["model"]["vocab"].erase("z");
  EXPECT_EQ(parse(file).encode("hello"), (Ids{259}));
  EXPECT_HAS(error_of([&] { parse(file).encode("zoo"); }), "none for byte 0x7A");
  file["model"]["unk_token"] = "<unk>";
  EXPECT_HAS(error_of([&] { parse(file); }), "'<unk>'");
  file["model"]["vocab"]["<unk>"] = 270;
  EXPECT_EQ(parse(file).encode("zzo"), (Ids{270, 270, 'o'}));
  file["model"]["fuse_unk"] = true;
  EXPECT_EQ(parse(file).encode("zzo"), (Ids{270, 'o'}));
}

TEST(Tokenizer, UnsupportedPartsAreNamed) {
  EXPECT_HAS(refusal([](Json& f) {
               f["normalizer"] = {{"type", "NFKC"}};
             }),
             "normalizer: expected NFC, Replace, Prepend or Sequence, found 'NFKC'");
  EXPECT_HAS(refusal([](Json& f) { f["pre_tokenizer"] = {{"type", "Metaspace"}}; }), "'Metaspace'");
  EXPECT_HAS(refusal([](Json& f) { f["pre_tokenizer"] = nullptr; }), "pre_tokenizer");
  EXPECT_HAS(refusal([](Json& f) { f["pre_tokenizer"] = {{"type", "Digits"}}; }), "ByteLevel");
  EXPECT_HAS(refusal([](Json& f) {
               f["post_processor"] = {{"type", "BertProcessing"}};
             }),
             "'BertProcessing'");
  EXPECT_HAS(refusal([](Json& f) { f["decoder"] = {{"type", "WordPiece"}}; }), "'WordPiece'");
  EXPECT_HAS(refusal([](Json& f) { f["decoder"] = nullptr; }), "decoder: expected ByteLevel, found none");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["type"] = "Unigram"; }), "'Unigram'");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["byte_fallback"] = true; }), "byte_fallback");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["dropout"] = 0.1; }), "dropout");
  EXPECT_HAS(refusal([](Json& f) { f["pre_tokenizer"] = split_by("\\w+"); }),
             "the escape '\\w' at character 1");
}

TEST(Tokenizer, BrokenFilesAreRefused) {
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"]["x2"] = -3; }), "found -3 for 'x2'");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"]["x2"] = 1e18; }), "'x2'");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"]["x2"] = uint64_t{1} << 63; }), "'x2'");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"]["x2"] = 4194304; }), "0 to 4194303");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"]["x2"] = 5; }), "its id 5 again");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"]["x2"] = "7"; }), "a string for 'x2'");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["vocab"] = Json::array({"a", "b"}); }), "no such vocab");
  EXPECT_HAS(refusal([](Json& f) { f["model"].erase("merges"); }), "no merges");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["merges"].push_back("x y z"); }),
             "merge 5: expected two tokens");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["merges"].push_back(Json::array({"x"})); }), "a list of 1");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["merges"].push_back(3); }), "merge 5");
  EXPECT_HAS(refusal([](Json& f) { f["model"]["merges"].push_back("x y"); }),
             "merge 5: expected tokens of the vocabulary, and their joint one, found 'xy'");
  EXPECT_HAS(refusal([](Json& f) { f["added_tokens"][0]["id"] = 259; }),
             "'<|end|>': expected an id of its own, found id 259");
  EXPECT_HAS(refusal([](Json& f) { f["added_tokens"][0]["content"] = "hello"; }),
             "expected id 259, found id 261");
  EXPECT_HAS(refusal([](Json& f) { f["added_tokens"][0]["id"] = -1; }), "added_tokens");
  EXPECT_HAS(refusal([](Json& f) { f["added_tokens"][0]["content"] = std::string(5000, 'x'); }),
             "5000 bytes");
  EXPECT_HAS(refusal([](Json& f) { f["added_tokens"] = 7; }), "a list");
  EXPECT_HAS(refusal([](Json& f) {
               f["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "("}}}, {"content", ""}};
             }),
             "')'");
  for (const char* text :
       {"", "[]", "3", "{", "{\"model\":{\"vocab\":{\"a\":0},\"vocab\":{\"b\":1}}}", "\"\xff\""})
    EXPECT_HAS(error_of([&] { Tokenizer::parse(text, "t.json"); }), "t.json");
  EXPECT_HAS(error_of([] { Tokenizer::parse("{\"a\":" + std::string(100000, '['), "t.json"); }),
             "nested at most 64 deep");
  std::string keys = "{";
  for (int i = 0; i < 5000; ++i) keys += fmt::format("\"{}\":0,", i);
  EXPECT_HAS(error_of([&] { Tokenizer::parse(keys + "\"x\":0}", "t.json"); }), "4096 keys");
}

TEST(Tokenizer, EndlessBacktrackingIsAnError) {
  Json file = small_file();
  file["pre_tokenizer"] = split_by("(?:a+)+b|(?:a|aa)+c");
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(tokenizer.encode("aab").size(), 3u);
  EXPECT_HAS(error_of([&] { tokenizer.encode(std::string(5000, 'a')); }), "in bounded time and memory");
}

TEST(Tokenizer, GrowthByNormalizersIsBounded) {
  Json file = small_file();
  Json steps = Json::array();
  for (int i = 0; i < 60; ++i)
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", steps}};
  EXPECT_HAS(error_of([&] { parse(file).encode("aaa"); }), "normalised text");
}

TEST(Tokenizer, LongRunsOfSpaceTakeLinearTime) {
  Json file = small_file();
  file["added_tokens"].push_back(
      {{"id", 310}, {"content", "  "}, {"lstrip", true}, {"rstrip", true}, {"normalized", false}});
  EXPECT_EQ(parse(file).encode(std::string(2000000, ' ') + "lo"), [] {
    Ids ids(1000000, 310);  // every match swallows what is left of the run
    ids.push_back(257);
    return ids;
  }());
}

TEST(Tokenizer, LoadsAFolder) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "sinter_tokenizer_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_HAS(error_of([&] { Tokenizer::load(folder); }), "tokenizer.json");
  std::ofstream(folder / "tiktoken.model") << "x";
  EXPECT_HAS(error_of([&] { Tokenizer::load(folder); }), "only tiktoken.model");
  std::ofstream(folder / "tokenizer.json") << small_file().dump();
  std::ofstream(folder / "tokenizer_config.json") << R"({"eos_token": "<|end|>"})";
  EXPECT_EQ(Tokenizer::load(folder).named_tokens().at("eos_token"), "<|end|>");
  std::ofstream(folder / "tokenizer_config.json") << "{";
  EXPECT_HAS(error_of([&] { Tokenizer::load(folder); }), "tokenizer_config.json");
  std::filesystem::remove_all(folder);
}

TEST(IncrementalDecoder, WaitsForWholeCharacters) {
  const Tokenizer tokenizer = parse(small_file());
  IncrementalDecoder decoder(tokenizer, true);
  EXPECT_EQ(decoder.push(0xE2), "");
  EXPECT_EQ(decoder.push(0x82), "");
  EXPECT_EQ(decoder.push(261), "");  // special, skipped
  EXPECT_EQ(decoder.push(0xAC), "€");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push('a'), "\uFFFDa");
  EXPECT_EQ(decoder.push(0xFF), "\uFFFD");
  EXPECT_EQ(decoder.push(0xC3), "");
  EXPECT_EQ(decoder.flush(), "\uFFFD");
  EXPECT_EQ(decoder.flush(), "");
}

}  // namespace
}  // namespace sinter::text
