#include "measure/cases.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file_map.h"
#include "base/json.h"

namespace sinter::measure {
namespace {

constexpr size_t kMaxCases = 10000;
constexpr int64_t kMaxNumber = int64_t{1} << 40;

// Fills the fields of a problem from JSON and remembers which keys are known.
class FieldReader {
 public:
  explicit FieldReader(const JsonObject& json) : json_(json) { known_ = {"op"}; }

  template <typename Value>
  void required(std::string_view key, Value& value) {
    json_.at(key);
    optional(key, value);
  }
  template <typename Value>
  void optional(std::string_view key, Value& value) {
    known_.emplace(key);
    if (json_.has(key)) read(key, value);
  }
  void check_no_others() const {
    for (const auto& [key, value] : json_.json().items())
      if (!known_.contains(key))
        throw Error(
            ErrorKind::kFormat,
            {.where = json_.where(key), .expected = "a field of the op", .found = "another key", .mend = {}});
  }

 private:
  void read(std::string_view key, int64_t& value) { value = json_.get_int(key, 0, kMaxNumber); }
  void read(std::string_view key, float& value) { value = static_cast<float>(json_.get_double(key)); }
  void read(std::string_view key, bool& value) { value = json_.get_bool(key); }
  void read(std::string_view key, std::vector<int64_t>& value) { value = json_.get_ints(key, 1, kMaxNumber); }
  void read(std::string_view key, DType& value) {
    value =
        choose<DType>(key, {DType::kF32, DType::kF16, DType::kBF16}, [](DType x) { return sinter::name(x); });
  }
  void read(std::string_view key, ops::WeightFormat& value) {
    using enum ops::WeightFormat;
    value = choose<ops::WeightFormat>(key, {kF32, kF16, kBF16, kFp8Tensor, kFp8Block, kNvfp4, kMxfp4, kMixed},
                                      [](ops::WeightFormat x) { return ops::name(x); });
  }
  void read(std::string_view key, ops::RouterScoring& value) {
    using enum ops::RouterScoring;
    value = choose<ops::RouterScoring>(key, {kSigmoid, kSoftmax}, [](ops::RouterScoring x) {
      return std::string_view(x == kSigmoid ? "sigmoid" : "softmax");
    });
  }
  void read(std::string_view key, Routing& value) {
    using enum Routing;
    value = choose<Routing>(key, {kEven, kOneExpert, kEmptySlots}, [](Routing x) {
      return std::string_view(x == kEven ? "even" : x == kOneExpert ? "one_expert" : "empty_slots");
    });
  }

  template <typename Value, typename NameOf>
  Value choose(std::string_view key, std::initializer_list<Value> values, const NameOf& name_of) {
    const std::string found = json_.get_string(key);
    std::string names;
    for (Value value : values) {
      if (found == name_of(value)) return value;
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(value));
    }
    throw Error(ErrorKind::kFormat,
                {.where = json_.where(key), .expected = "one of " + names, .found = found, .mend = {}});
  }

  const JsonObject& json_;
  std::set<std::string, std::less<>> known_;
};

void read_fields(FieldReader& r, ops::EmbeddingProblem& p) {
  r.required("T", p.T), r.required("V", p.V), r.required("H", p.H);
  r.optional("weight", p.weight), r.optional("y", p.y);
}
void read_fields(FieldReader& r, ops::RmsNormProblem& p) {
  r.required("N", p.N), r.required("H", p.H), r.required("eps", p.eps);
  r.optional("x", p.x), r.optional("y", p.y);
}
void read_fields(FieldReader& r, ops::LayerNormProblem& p) {
  r.required("N", p.N), r.required("H", p.H), r.required("eps", p.eps);
  r.optional("x", p.x), r.optional("y", p.y);
}
void read_fields(FieldReader& r, ops::RopeProblem& p) {
  r.required("T", p.T), r.required("N", p.N), r.required("R", p.R), r.required("interleaved", p.interleaved);
  r.optional("scale", p.scale), r.optional("x", p.x);
}
void read_fields(FieldReader& r, ops::LinearProblem& p) {
  r.required("T", p.T), r.required("N", p.N), r.required("K", p.K);
  r.optional("format", p.format), r.optional("x", p.x), r.optional("y", p.y);
  r.optional("has_bias", p.has_bias), r.optional("accumulate", p.accumulate);
}
void read_fields(FieldReader& r, ops::HeadLinearProblem& p) {
  r.required("T", p.T), r.required("Q", p.Q), r.required("N", p.N), r.required("K", p.K);
  r.optional("weight", p.weight), r.optional("x", p.x), r.optional("y", p.y);
}
void read_fields(FieldReader& r, ops::SiluMulProblem& p) {
  r.required("T", p.T), r.required("I", p.I);
  r.optional("x", p.x), r.optional("y", p.y);
}
void read_fields(FieldReader& r, ops::RouterProblem& p) {
  r.required("T", p.T), r.required("E", p.E), r.required("A", p.A);
  r.optional("scoring", p.scoring), r.optional("num_groups", p.num_groups);
  r.optional("topk_groups", p.topk_groups), r.optional("normalize", p.normalize);
  r.optional("scale", p.scale), r.optional("has_bias", p.has_bias);
}
void read_fields(FieldReader& r, ops::MoeFfnProblem& p) {
  r.required("T", p.T), r.required("H", p.H), r.required("I", p.I);
  r.required("E", p.E), r.required("A", p.A);
  r.optional("format", p.format), r.optional("format_down", p.format_down);
  r.optional("x", p.x), r.optional("y", p.y), r.optional("accumulate", p.accumulate);
}
void read_fields(FieldReader& r, ops::MlaAttentionProblem& p) {
  r.required("T", p.T), r.required("B", p.B), r.required("Q", p.Q), r.required("C", p.C);
  r.required("R", p.R), r.required("P", p.P), r.required("max_context", p.max_context);
  r.required("scale", p.scale), r.optional("index_topk", p.index_topk);
  r.optional("q", p.q), r.optional("cache", p.cache);
}
void read_fields(FieldReader& r, ops::GqaAttentionProblem& p) {
  r.required("T", p.T), r.required("B", p.B), r.required("Q", p.Q), r.required("G", p.G);
  r.required("D", p.D), r.required("Dv", p.Dv), r.required("P", p.P),
      r.required("max_context", p.max_context);
  r.required("scale", p.scale), r.optional("index_topk", p.index_topk);
  r.optional("q", p.q), r.optional("cache", p.cache);
}
void read_fields(FieldReader& r, ops::IndexerProblem& p) {
  r.required("T", p.T), r.required("B", p.B), r.required("heads", p.heads), r.required("D", p.D);
  r.required("P", p.P), r.required("max_context", p.max_context), r.required("topk", p.topk);
  r.optional("q", p.q), r.optional("cache", p.cache);
}
void read_fields(FieldReader& r, ops::CacheWriteProblem& p) {
  r.required("T", p.T), r.required("B", p.B), r.required("W", p.W), r.required("P", p.P);
  r.optional("x", p.x), r.optional("cache", p.cache);
}
void read_fields(FieldReader& r, ops::SampleProblem& p) { r.required("B", p.B), r.required("V", p.V); }

ops::Problem problem_of(const std::string& op_name, const std::string& where) {
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    ops::Problem problem;
    const bool found =
        ((op_name == ops::name(static_cast<ops::Op>(kIndex)) ? (problem.emplace<kIndex>(), true) : false) ||
         ...);
    if (!found)
      throw Error(
          ErrorKind::kFormat,
          {.where = where, .expected = "the name of an op", .found = "'" + op_name + "'", .mend = {}});
    return problem;
  }
  (std::make_index_sequence<ops::kNumOps>());
}

Case read_case(const Json& json, const std::string& file, const std::string& where) {
  const JsonObject object(json, where);
  Case result{.name = {}, .problem = problem_of(object.get_string("op"), object.where("op")), .scenario = {}};
  FieldReader reader(object);
  std::visit([&](auto& problem) { read_fields(reader, problem); }, result.problem);
  reader.optional("routing", result.scenario.routing);
  reader.optional("lengths", result.scenario.lengths);
  reader.optional("strided", result.scenario.strided);
  reader.check_no_others();
  result.name = fmt::format("{}: {}", file, ops::describe(result.problem));
  return result;
}

// Values that stand for several cases: a list, for "lengths" a list of lists.
bool is_choice(const std::string& key, const Json& value) {
  return value.is_array() && (key != "lengths" || (!value.empty() && value.front().is_array()));
}

std::vector<Json> expand(const Json& json, const std::string& where) {
  std::vector<Json> results = {Json::object()};
  for (const auto& [key, value] : json.items()) {
    std::vector<Json> longer;
    for (const Json& start : results) {
      const Json choices = is_choice(key, value) ? value : Json::array({value});
      for (const Json& choice : choices) {
        longer.push_back(start);
        longer.back()[key] = choice;
      }
      if (longer.size() > kMaxCases)
        throw Error(ErrorKind::kLimit, {.where = where,
                                        .expected = fmt::format("at most {} combinations", kMaxCases),
                                        .found = "more",
                                        .mend = {}});
    }
    results = std::move(longer);
  }
  return results;
}

}  // namespace

std::vector<Case> parse_cases(std::string_view text, const std::string& where, CaseUse use) {
  const Json json = parse_json(text, where);
  const JsonObject file(json, where);
  const std::string stem = std::filesystem::path(where).stem().string();
  const Json& list = file.at("cases");
  if (!list.is_array())
    throw Error(ErrorKind::kFormat,
                {.where = file.where("cases"), .expected = "a list", .found = list.type_name(), .mend = {}});
  std::vector<Case> cases;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string entry_where = fmt::format("{}: cases[{}]", where, i);
    Json entry = JsonObject(list[i], entry_where).json();
    const Json replacements = entry.value("test", Json::object());
    entry.erase("test");
    if (use == CaseUse::kTest)
      for (const auto& [key, value] : JsonObject(replacements, entry_where + ": key 'test'").json().items())
        entry[key] = value;
    for (const Json& one : expand(entry, entry_where)) cases.push_back(read_case(one, stem, entry_where));
  }
  return cases;
}

std::vector<Case> load_cases(const std::filesystem::path& folder, CaseUse use) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  if (error || files.empty())
    throw Error(ErrorKind::kFile,
                {.where = folder.string(), .expected = "a folder with *.json", .found = "none", .mend = {}});
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const auto& file : files)
    for (Case& one : parse_cases(read_text_file(file), file.string(), use)) cases.push_back(std::move(one));
  return cases;
}

}  // namespace sinter::measure
