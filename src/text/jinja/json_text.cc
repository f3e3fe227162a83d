#include "text/jinja/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/python_text.h"
#include "text/jinja/runtime.h"
#include "text/utf8.h"

namespace sinter::text::jinja {
namespace {

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  std::string write(const Value& value) {
    append(value, 0);
    return std::move(out_);
  }

 private:
  void append(const Value& value, int level) {
    const Runtime::Nested nested(runtime_);
    runtime_.step();
    runtime_.check_room(out_.size());
    if (value.is_text()) {
      append_text(value.text());
    } else if (value.is_list() && value.list().flavour <= List::Flavour::kTuple) {
      append_list(value.list(), level);
    } else if (value.is_dict()) {
      append_dict(value.dict(), level);
    } else if (!append_scalar(value)) {
      if (value.is_undefined()) runtime_.fail_undefined(value);
      runtime_.fail(fmt::format("tojson: a '{}' has no form in JSON", type_name(value)));
    }
  }

  bool append_scalar(const Value& value) {
    if (value.is_none())
      out_ += "null";
    else if (value.is<bool>())
      out_ += value.as<bool>() ? "true" : "false";
    else if (value.is<int64_t>())
      out_ += std::to_string(value.as<int64_t>());
    else if (value.is<double>() && std::isnan(value.as<double>()))
      out_ += "NaN";
    else if (value.is<double>() && std::isinf(value.as<double>()))
      out_ += value.as<double>() > 0 ? "Infinity" : "-Infinity";
    else if (value.is<double>())
      out_ += float_repr(value.as<double>());
    else
      return false;
    return true;
  }

  void append_text(std::string_view text) {
    runtime_.scan(text.size());
    out_ += '"';
    for (size_t pos = 0; pos < text.size();) {
      const char32_t code = next_code_point(text, pos);
      switch (code) {
        case '"': out_ += "\\\""; break;
        case '\\': out_ += "\\\\"; break;
        case '\n': out_ += "\\n"; break;
        case '\r': out_ += "\\r"; break;
        case '\t': out_ += "\\t"; break;
        case '\f': out_ += "\\f"; break;
        case '\b': out_ += "\\b"; break;
        default:
          if (code < 0x20 || (style_.is_ascii && code >= 0x7F))
            append_escape(code);
          else
            append_utf8(out_, code);
      }
    }
    out_ += '"';
  }

  void append_escape(char32_t code) {
    const auto put = [&](char32_t unit) {
      fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<uint32_t>(unit));
    };
    if (code < 0x10000) return put(code);
    put(0xD800 + ((code - 0x10000) >> 10));
    put(0xDC00 + ((code - 0x10000) & 0x3FF));
  }

  void begin_line(int level) {
    if (!style_.indent) return;
    out_ += '\n';
    for (int i = 0; i < level; ++i) out_ += *style_.indent;
  }

  void append_list(const List& list, int level) {
    out_ += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      begin_line(level + 1);
      append(list.items[i], level + 1);
    }
    if (!list.items.empty()) begin_line(level);
    out_ += ']';
  }

  void append_dict(const Dict& dict, int level) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.has_sorted_keys)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* left, const auto* right) {
        return is_less(runtime_, left->first, right->first);
      });
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      begin_line(level + 1);
      append_key(entries[i]->first);
      out_ += style_.key_separator;
      append(entries[i]->second, level + 1);
    }
    if (!entries.empty()) begin_line(level);
    out_ += '}';
  }

  void append_key(const Value& key) {
    if (key.is_text()) return append_text(key.text());
    out_ += '"';
    if (!append_scalar(key)) runtime_.fail(fmt::format("tojson: a '{}' cannot be a key", type_name(key)));
    out_ += '"';
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  return Writer(runtime, style).write(value);
}

}  // namespace sinter::text::jinja
