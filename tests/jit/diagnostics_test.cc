#include "jit/diagnostics.h"

#include <gtest/gtest.h>

namespace sinter::jit {
namespace {

TEST(ParseErrors, HasEveryErrorOnceAndNothingElse) {
  const Diagnostics errors = parse_errors(R"(cuda/a.cu(3): error: identifier "foo" is undefined
   p[0]=foo;
        ^

gpu/b.h(14): error #20-D: expected a ";"
gpu/b.h(14): error: again
cuda/a.cu(2): warning #177-D: variable "error" was declared but never referenced
   int error;
       ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

2 errors detected in the compilation of "cuda/a.cu".
)",
                                          "cuda/a.cu");
  EXPECT_EQ(errors.where, "cuda/a.cu:3");
  EXPECT_EQ(errors.text, "identifier \"foo\" is undefined; gpu/b.h:14: expected a \";\"; again");
}

TEST(ParseErrors, KnowsTheAssemblerAndTheDriverOfTheCompiler) {
  const Diagnostics assembler = parse_errors(
      "ptxas application ptx input, line 25; error   : Instruction 'wgmma.fence' not supported on .target "
      "'sm_80'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n",
      "cuda/a.cu");
  EXPECT_EQ(assembler.where, "cuda/a.cu");
  EXPECT_EQ(assembler.text,
            "Instruction 'wgmma.fence' not supported on .target 'sm_80'; Ptx assembly aborted due to errors");
  EXPECT_EQ(parse_errors("nvrtc: error: unrecognized option --nonsense found\n", "a").text,
            "unrecognized option --nonsense found");
  EXPECT_EQ(parse_errors("cuda/x.cu(1): catastrophic error: cannot open source file\n", "a").where,
            "cuda/x.cu:1");
}

TEST(ParseErrors, LeavesUnknownTextAsItIs) {
  EXPECT_EQ(parse_errors("something else", "cuda/a.cu").text, "something else");
  EXPECT_EQ(parse_errors("", "cuda/a.cu").where, "cuda/a.cu");
  EXPECT_EQ(parse_errors("): error: x\nptxas\n(): y", "a").text, "): error: x\nptxas\n(): y");
}

}  // namespace
}  // namespace sinter::jit
