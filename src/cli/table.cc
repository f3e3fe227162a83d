#include "cli/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sinter::cli {
namespace {

// Code points, which is the width for everything that we print.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string scaled(double value, const std::array<std::string_view, 5>& units) {
  size_t unit = 0;
  while (value >= 999.9995 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f}{}", value, units[0]) : fmt::format("{:.3f}{}", value, units[unit]);
}

}  // namespace

Table::Table(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    is_right_.push_back(title.starts_with('>'));
    if (is_right_.back()) title.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  rows_.push_back(std::move(cells));
}

void Table::add_rule() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const std::string& title : titles_) widths.push_back(width(title));
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));

  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string pad(widths[i] - width(cells[i]), ' ');
      line += is_right_[i] ? pad + cells[i] : cells[i] + pad;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  const auto add_rule_line = [&] {
    std::vector<std::string> rule;
    rule.reserve(widths.size());
    for (const size_t w : widths) rule.push_back(std::string(w, '-'));
    add_line(rule);
  };
  add_line(titles_);
  add_rule_line();
  for (const auto& row : rows_) {
    if (row.empty()) {
      add_rule_line();
    } else {
      add_line(row);
    }
  }
  return text;
}

std::string format_bytes(double bytes) { return scaled(bytes, {" B", " kB", " MB", " GB", " TB"}); }

std::string format_count(double count) { return scaled(count, {"", " k", " M", " B", " T"}); }

std::string format_time(double time_us) {
  if (time_us < 1000) return fmt::format("{:.2f} us", time_us);
  if (time_us < 1e6) return fmt::format("{:.4f} ms", time_us / 1e3);
  return fmt::format("{:.3f} s", time_us / 1e6);
}

}  // namespace sinter::cli
