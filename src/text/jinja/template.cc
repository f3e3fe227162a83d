#include "text/jinja/template.h"

#include "base/error.h"
#include "base/json.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"

namespace sinter::text::jinja {

Template::Template(std::string_view source, std::string where)
    : where_(std::move(where)), parsed_(std::make_unique<const ParsedTemplate>(parse(source, where_))) {}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

std::string Template::render(const Json& variables, const Limits& limits) const {
  return render(variables, limits, std::time(nullptr));
}

std::string Template::render(const Json& variables, const Limits& limits, std::time_t now) const {
  SINTER_CHECK(variables.is_object(), "template variables are a {}", variables.type_name());
  Runtime runtime(where_, limits);
  Interpreter interpreter(*parsed_, runtime, now);
  const auto scope = std::make_shared<Scope>();
  for (const auto& [name, value] : variables.items())
    if (const auto symbol = parsed_->symbols.find(name); symbol != parsed_->symbols.end())
      scope->set(&*symbol, from_json(runtime, value));
  return interpreter.run(scope);
}

}  // namespace sinter::text::jinja
