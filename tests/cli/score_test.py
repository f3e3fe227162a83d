"""`score` of every model type, and of checkpoints that other exporters wrote, against transformers.

The references are logits of Hugging Face transformers in float32 (tests/golden/reference), on dequantised weights
where the checkpoint is quantised (tests/golden/exports).
"""
import numpy as np
import program
from program import REFERENCE, ROOT, TOKENS, ProgramTest, make_checkpoint
from safetensors.numpy import load_file

CASES = sorted(path.stem for path in REFERENCE.glob("*.safetensors"))
EXPORTS = sorted(path for path in (ROOT / "tests/golden/exports").iterdir() if path.is_dir())
LIMIT = 2e-3  # of the relative error; a wrong choice of an expert or of a position is far above it


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


class Score(ProgramTest):
    def logits(self, folder, tokens, *words):
        out = self.scratch / "logits.safetensors"
        self.succeed("score", folder, "--tokens", tokens, "--logits", out, *words)
        return load_file(out)["logits"]

    def test_all_model_types_as_transformers(self):
        self.assertGreaterEqual(len(CASES), 7)
        for case in CASES:
            for suffix in ("", "_nvfp4"):
                with self.subTest(case=case + suffix):
                    folder = self.scratch / (case + suffix)
                    make_checkpoint(folder, case, nvfp4=bool(suffix))
                    expected = load_file(REFERENCE / f"{case}.safetensors")["logits" + suffix]
                    found = self.logits(folder, TOKENS, "--reference")
                    error = relative_error(found, expected)
                    in_chunks = relative_error(self.logits(folder, TOKENS, "--reference", "--chunk", 7), found)
                    one_by_one = relative_error(self.logits(folder, TOKENS, "--reference", "--chunk", 1), found)
                    # Without --reference: tokens before the first other choice of an expert or a position, which
                    # moves a token's logits by tenths.
                    found = self.logits(folder, TOKENS)
                    by_token = np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)
                    first_flip = int(np.argmax(by_token > 0.05)) if (by_token > 0.05).any() else len(by_token)
                    error_16_bit = relative_error(found[:first_flip], expected[:first_flip]) if first_flip else np.nan
                    print(f"{case + suffix:26s} reference {error:.1e}, in chunks of 7 {in_chunks:.1e}, token by token "
                          f"{one_by_one:.1e}; 16 bit {error_16_bit:.1e} over the {first_flip} tokens before a flip")
                    self.assertLess(error, LIMIT)
                    self.assertLess(in_chunks, 1e-4)
                    self.assertLess(one_by_one, 1e-4)
                    self.assertGreater(first_flip, 2)
                    self.assertLess(error_16_bit, 3e-2)

    def test_checkpoints_of_other_exporters(self):
        self.assertGreaterEqual(len(EXPORTS), 5)
        for folder in EXPORTS:
            with self.subTest(export=folder.name):
                expected = load_file(folder / "reference/logits.safetensors")["logits"]
                error = relative_error(self.logits(folder, folder / "tokens.json", "--reference"), expected)
                print(f"{folder.name:26s} reference {error:.1e}")
                self.assertLess(error, LIMIT)


if __name__ == "__main__":
    program.main()
