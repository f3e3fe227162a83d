// Base for reading JSON as a stream of events: no tree is built, repeated keys are seen, and hundreds of
// thousands of keys cost linear time. Every event that a reader does not expect is an error.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace sinter::checkpoint {

class SaxReader : public nlohmann::json_sax<Json> {
 public:
  explicit SaxReader(std::string_view where) : where_(where) {}

  void read(std::string_view text) { Json::sax_parse(text.begin(), text.end(), this); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool number_integer(number_integer_t value) override { unexpected(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { unexpected(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected(text); }
  bool string(string_t& value) override { unexpected(fmt::format("\"{}\"", value)); }
  bool binary(binary_t&) override { unexpected("bytes"); }
  bool start_object(size_t) override { unexpected("an object"); }
  bool start_array(size_t) override { unexpected("a list"); }
  bool end_array() override { return true; }
  bool parse_error(size_t byte, const std::string&, const Json::exception&) override {
    throw Error(ErrorKind::kFormat, {.where = where_,
                                     .expected = "JSON",
                                     .found = fmt::format("a syntax error at byte {}", byte),
                                     .mend = {}});
  }

 protected:
  [[noreturn]] void fail(const std::string& item, std::string expected, std::string found) const {
    throw Error(ErrorKind::kFormat, {.where = item.empty() ? where_ : where_ + ": " + item,
                                     .expected = std::move(expected),
                                     .found = std::move(found),
                                     .mend = {}});
  }
  // What the reader was waiting for, for the message of an event out of place.
  virtual std::pair<std::string, std::string> item_and_expected() const = 0;

 private:
  [[noreturn]] void unexpected(std::string found) const {
    if (found.size() > 60) found = found.substr(0, 57) + "...";
    const auto [item, expected] = item_and_expected();
    fail(item, expected, std::move(found));
  }

  std::string where_;
};

}  // namespace sinter::checkpoint
