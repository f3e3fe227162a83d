// Aligned columns and numbers with units, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinter::cli {

class Table {
 public:
  // A column whose title begins with '>' is aligned right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells);
  void add_rule();
  std::string text() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> rows_;  // empty: a rule
};

std::string format_bytes(double bytes);   // "49.108 GB", powers of 1000
std::string format_count(double count);   // "743.911 B"
std::string format_time(double time_us);  // "3.4255 ms"

}  // namespace sinter::cli
