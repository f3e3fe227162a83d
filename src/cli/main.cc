// sinter <verb> [options]. Exit code 0, 1 when the work failed, 2 when the call was wrong.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace sinter::cli {
namespace {

// The parser's own texts end in hints and line breaks of their own.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(" .") + 1);
  return text;
}

void check_verb(std::string_view word) {
  if (word.starts_with('-')) return;
  std::string names;
  for (const Verb& verb : verbs()) {
    if (verb.name == word) return;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", verb.name);
  }
  throw Error(ErrorKind::kUsage,
              {.where = "verb", .expected = names, .found = fmt::format("'{}'", word), .mend = ""});
}

// "" is an unset variable of a shell more often than a wish.
void check_not_empty(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i].empty() || (words[i].starts_with("--") && words[i].ends_with('=')))
      throw Error(ErrorKind::kUsage, {.where = words[i].empty() ? i > 0 ? words[i - 1] : "verb" : words[i],
                                      .expected = "a value",
                                      .found = "an empty one",
                                      .mend = ""});
}

// The parser would take an option for the value of the one before it.
void check_values(CLI::App& verb_app, const std::vector<std::string>& words) {
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (!words[i].starts_with("--") || !words[i + 1].starts_with("--")) continue;
    const CLI::Option* option = verb_app.get_option_no_throw(words[i]);
    if (option != nullptr && option->get_expected_min() > 0)
      throw Error(ErrorKind::kUsage,
                  {.where = words[i],
                   .expected = "a value",
                   .found = fmt::format("the option {}", words[i + 1]),
                   .mend = fmt::format("a value that begins so is written {}={}", words[i], words[i + 1])});
  }
}

// The parser would read 010 as eight and take 0x10, 1'000 and the like.
void expect_decimal(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (!type.starts_with("INT") && !type.starts_with("UINT")) continue;
    option->check([](const std::string& text) {
      const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
      const bool is_decimal = !digits.empty() && (digits == "0" || digits.front() != '0') &&
                              digits.find_first_not_of("0123456789") == std::string_view::npos;
      return is_decimal ? std::string() : "expected a decimal integer, found '" + text + "'";
    });
  }
}

int run(const std::vector<std::string>& words, Console& console) {
  CLI::App app{"Runs NVFP4 mixture-of-experts models.", "sinter"};
  app.set_version_flag("--version", "sinter " SINTER_VERSION);
  app.require_subcommand(1);
  app.footer("sinter VERB --help tells the options of a verb.");
  std::function<int(Console&)> action;
  for (const Verb& verb : verbs()) {
    CLI::App* verb_app = app.add_subcommand(std::string(verb.name), std::string(verb.summary));
    verb_app->add_flag("--json", console.json, "One JSON object on stdout");
    verb_app->add_flag("--quiet", console.quiet, "No notes and no progress on stderr");
    verb_app->final_callback([&action, verb_action = verb.define(*verb_app)] { action = verb_action; });
    expect_decimal(*verb_app);
  }
  if (words.empty()) {
    const std::string help = app.help();
    (void)std::fwrite(help.data(), 1, help.size(), stderr);
    return kUsage;
  }
  check_not_empty(words);
  check_verb(words.front());
  if (!words.front().starts_with('-')) check_values(*app.get_subcommand(words.front()), words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    console.print(app.help());
    return kOk;
  } catch (const CLI::CallForAllHelp&) {
    console.print(app.help("", CLI::AppFormatMode::All));
    return kOk;
  } catch (const CLI::CallForVersion& version) {
    console.print(std::string(version.what()) + "\n");
    return kOk;
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::kUsage,
                {.where = one_line(error.what()),
                 .expected = "",
                 .found = "",
                 .mend = fmt::format("see `sinter {}--help`",
                                     words.front().starts_with('-') ? "" : words.front() + " ")});
  }
  const int code = action(console);
  console.flush();
  return code;
}

}  // namespace
}  // namespace sinter::cli

int main(int argc, char** argv) {
  using namespace sinter;
  cli::Console console;
  const std::vector<std::string> words(argv + 1, argv + argc);
  // Known before the options are parsed: a wrong option is an error in JSON too.
  console.json = std::find(words.begin(), words.end(), "--json") != words.end();
  set_log_sink([&console](LogLevel level, std::string_view message) {
    if (level == LogLevel::kWarning) {
      console.note(fmt::format("warning: {}", message));
    } else if (level == LogLevel::kInfo) {
      console.note(message);
    }
  });
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  try {
    return cli::run(words, console);
  } catch (const Error& error) {
    kind = error.kind();
    message = error.what();
  } catch (const std::bad_alloc&) {
    kind = ErrorKind::kMemory;
    message = "out of memory (a shorter --context, or a smaller model)";
  } catch (const std::exception& error) {
    message = fmt::format("{} (this is a bug in sinter, please report it)", error.what());
  }
  console.fail(kind, message);
  return kind == ErrorKind::kUsage ? cli::kUsage : cli::kFailed;
}
