#include "base/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace sinter {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Json, BrokenTextIsAnErrorWithAPlace) {
  for (const char* text : {"", "{", "[1,]", "{\"a\": 1", "nul", "\"\\x\"", "\"\xff\"", "1 2", "{\"a\" 1}"}) {
    SCOPED_TRACE(text);
    const std::string message = message_of([&] { parse_json(text, "some.json"); });
    EXPECT_TRUE(message.starts_with("some.json: expected JSON, found a syntax error at byte")) << message;
  }
  EXPECT_EQ(parse_json("{\"b\": 1, \"a\": 2}", "x").dump(), "{\"b\":1,\"a\":2}") << "keeps the order";
}

TEST(Json, NestingIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_NO_THROW(parse_json(nested(64), "x"));
  EXPECT_NE(message_of([&] { parse_json(nested(70), "x"); }).find("at most 64 deep"), std::string::npos);
  EXPECT_NE(message_of([&] { parse_json(std::string(1000000, '['), "x"); }).find("at most 64 deep"),
            std::string::npos);
  EXPECT_NO_THROW(parse_json(nested(9), "x", 9));
}

TEST(JsonObject, ReadsTypedValues) {
  const Json json = parse_json(R"({"i": 6144, "f": 6144.0, "d": 1e-5, "s": "x", "none": null, "o": {"i": 1},
                                   "ints": [1, 2], "t": true})",
                               "x");
  const JsonObject object(json, "config.json");
  EXPECT_EQ(object.get_int("i", 1, 10000), 6144);
  EXPECT_EQ(object.get_int("f", 1, 10000), 6144);
  EXPECT_DOUBLE_EQ(object.get_double("d"), 1e-5);
  EXPECT_EQ(object.get_string("s"), "x");
  EXPECT_TRUE(object.get_bool("t"));
  EXPECT_EQ(object.get_object("o").get_int("i", 0, 9), 1);
  EXPECT_EQ(object.get_object("o").where("i"), "config.json: key 'o': key 'i'");
  EXPECT_EQ(object.get_ints("ints", 0, 9), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(object.get_ints("i", 0, 9999), (std::vector<int64_t>{6144}));
  EXPECT_FALSE(object.has("none")) << "null counts as absent";
  EXPECT_EQ(object.get_int_or("none", 0, 9, 7), 7);
  EXPECT_FALSE(object.find_object("missing").has_value());
}

TEST(JsonObject, WrongValuesAreErrorsThatNameTheKey) {
  const Json json = parse_json(
      R"({"big": 18446744073709551615, "half": 0.5, "text": "1", "list": [1, "a"], "huge": 1e300})", "x");
  const JsonObject object(json, "config.json");
  EXPECT_EQ(message_of([&] { object.get_int("half", 0, 9); }),
            "config.json: key 'half': expected an integer from 0 to 9, found number 0.5");
  EXPECT_EQ(message_of([&] { object.get_int("missing", 0, 9); }),
            "config.json: key 'missing': expected a value, found no such key");
  for (const char* key : {"big", "text", "huge", "list"})
    EXPECT_NE(message_of([&] { object.get_int(key, 0, INT64_MAX); }).find(key), std::string::npos) << key;
  EXPECT_NE(message_of([&] { object.get_ints("list", 0, 9); }), "no error");
  EXPECT_NE(message_of([&] { object.get_strings("list"); }), "no error");
  EXPECT_NE(message_of([&] { object.get_double("text"); }), "no error");
  EXPECT_NE(message_of([&] { JsonObject(json["list"], "x"); }), "no error");
}

}  // namespace
}  // namespace sinter
