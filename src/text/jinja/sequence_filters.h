// Filters that walk over their input.
#pragma once

#include "text/jinja/value.h"

namespace sinter::text::jinja {

Value batch(Runtime& runtime, const Value& value, const Arguments& arguments);
Value dict_sort(Runtime& runtime, const Value& value, const Arguments& arguments);
Value extreme(Runtime& runtime, const Value& value, const Arguments& arguments, bool wants_max);
Value first(Runtime& runtime, const Value& value, const Arguments& arguments);
Value items(Runtime& runtime, const Value& value, const Arguments& arguments);
Value join_filter(Runtime& runtime, const Value& value, const Arguments& arguments);
Value last(Runtime& runtime, const Value& value, const Arguments& arguments);
Value list_filter(Runtime& runtime, const Value& value, const Arguments& arguments);
Value map(Runtime& runtime, const Value& value, const Arguments& arguments);
Value reverse(Runtime& runtime, const Value& value, const Arguments& arguments);
// select, selectattr and, with `keeps_passing` false, reject and rejectattr.
Value select(Runtime& runtime, const Value& value, const Arguments& arguments, bool by_attribute,
             bool keeps_passing);
Value slice_filter(Runtime& runtime, const Value& value, const Arguments& arguments);
Value sort(Runtime& runtime, const Value& value, const Arguments& arguments);
Value sum(Runtime& runtime, const Value& value, const Arguments& arguments);
Value unique(Runtime& runtime, const Value& value, const Arguments& arguments);

}  // namespace sinter::text::jinja
