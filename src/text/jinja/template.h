// A Jinja2 template as Hugging Face renders chat templates: the ImmutableSandboxedEnvironment of jinja2 with
// trim_blocks, lstrip_blocks, break and continue, `tojson` that keeps non-ASCII, `raise_exception` and
// `strftime_now`. The language is the part of Jinja2 that chat templates use; what is left out (inheritance,
// imports, recursive loops, some filters and methods) is Error(kUnsupported) with its name and line.
//
// Sandboxed by construction: a template reads the values it is given and writes text, nothing else, within
// `Limits`.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "text/jinja/runtime.h"

namespace sinter::text::jinja {

struct ParsedTemplate;

class Template {
 public:
  // `where` names the template in errors. Throws Error(kFormat, kUnsupported, kLimit).
  Template(std::string_view source, std::string where);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // `variables` is an object. Throws Error(kUsage) when the template itself refuses (`raise_exception`),
  // kFormat, kUnsupported or kLimit otherwise. May be called by several threads at once.
  std::string render(const Json& variables, const Limits& limits = {}) const;
  // The same at a given time, which `strftime_now` prints.
  std::string render(const Json& variables, const Limits& limits, std::time_t now) const;

 private:
  std::string where_;
  std::unique_ptr<const ParsedTemplate> parsed_;
};

}  // namespace sinter::text::jinja
