// tokenizer.json's patterns are written for Oniguruma (Ruby's syntax). This turns one into a PCRE2
// pattern of the same meaning (with PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, newline LF, and the
// characters of unicode_stand_in.h replaced). What the two engines read differently is rewritten:
//
//   a{1,3}+      PCRE2: possessive       Oniguruma: (?:a{1,3})+
//   a{2}?        lazy                    (?:a{2})?
//   a{,2}        literal                 a{0,2}
//   \p{Han}      script extensions       \p{sc:Han}
//   \h \v        blank, vertical space   hexadecimal digit, U+000B
//   (?i:ss)      two characters          also one sharp s: rejected
//   \w \b        other word characters   rejected, as are sets in sets, back references, callouts, ...
//
// Groups do not capture: nothing reads them.
#pragma once

#include <string>
#include <string_view>

namespace sinter::text {

// `pattern` is valid UTF-8. Throws Error(kUnsupported) naming the construct, the character it stands at
// and `where`.
std::string translate_oniguruma(std::string_view pattern, std::string_view where);

// The pattern that matches `text` alone.
std::string quote_for_pcre2(std::string_view text);

}  // namespace sinter::text
