"""Runs the program, and makes small checkpoints for it. argv: the program, the root of the sources."""
import atexit
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, ROOT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
REFERENCE = ROOT / "tests/golden/reference"
TOKENS = REFERENCE / "tokens.json"

GLM_5 = json.loads((ROOT / "models/configs/glm-5/config.json").read_text())


class Result:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out_bytes = completed.stdout
        self.out = completed.stdout.decode()
        self.err = completed.stderr.decode()

    def json(self):
        """stdout is one JSON object and nothing else."""
        return json.loads(self.out)


def run(*words, stdin=b"", timeout=600, **environment):
    return Result(subprocess.run([PROGRAM, *map(str, words)], input=stdin, capture_output=True, timeout=timeout,
                                 env={"PATH": "/usr/bin:/bin", **environment}))


def byte_level_tokenizer(num_more=0):
    """tokenizer.json with one token a byte, two special ones behind, and `num_more` that nothing makes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    characters, num_shifted = {}, 0
    for byte in range(256):
        characters[byte] = byte if byte in printable else 256 + num_shifted
        num_shifted += byte not in printable
    vocab = {chr(characters[byte]): byte for byte in range(256)}
    vocab |= {f"more{i}": 258 + i for i in range(num_more)}
    special = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": [{"id": 256, "content": "<|user|>", **special}, {"id": 257, "content": "<|end|>", **special}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []},
    }  # fmt: skip


TEMPLATE = "{% for m in messages %}<|user|>{{ m.role }}: {{ m.content }}\n{% endfor %}"


def make_checkpoint(folder, case="glm_moe_dsa", nvfp4=False):
    command = [sys.executable, REFERENCE / "make_checkpoint.py", case, folder] + (["--nvfp4"] if nvfp4 else [])
    subprocess.run(command, check=True, capture_output=True)
    (folder / "tokenizer.json").write_text(json.dumps(byte_level_tokenizer()))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


class ProgramTest(unittest.TestCase):
    """Has a scratch folder with the checkpoints `bf16` and `nvfp4`, which all tests share and none changes."""

    @classmethod
    def setUpClass(cls):
        if hasattr(ProgramTest, "scratch"):
            return
        ProgramTest.scratch = pathlib.Path(tempfile.mkdtemp(prefix="sinter-cli-"))
        atexit.register(shutil.rmtree, ProgramTest.scratch)
        ProgramTest.bf16 = make_checkpoint(cls.scratch / "bf16")
        ProgramTest.nvfp4 = make_checkpoint(cls.scratch / "nvfp4", nvfp4=True)

    def new_path(self, name="new"):
        return pathlib.Path(tempfile.mkdtemp(dir=self.scratch)) / name

    def copy_of(self, folder):
        return shutil.copytree(folder, self.new_path("model"))

    def config_folder(self, config):
        folder = self.new_path("config")
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def succeed(self, *words, **more):
        result = run(*words, **more)
        self.assertEqual(result.code, 0, result.err)
        return result

    def fail_with(self, code, kind, *words, says=(), **more):
        """One line on stderr, one JSON object on stdout, both with the message."""
        result = run(*words, "--quiet", "--json", **more)
        self.assertEqual(result.code, code, result.out + result.err)
        self.assertTrue(result.err.startswith("sinter: error: "), result.err)
        self.assertEqual(result.err.count("\n"), 1, result.err)
        self.assertNotIn("bug in sinter", result.err)
        error = result.json()["error"]
        self.assertEqual(set(error), {"kind", "message"})
        self.assertEqual(error["kind"], kind, error)
        self.assertEqual(result.err, f"sinter: error: {error['message']}\n")
        for text in says:
            self.assertIn(str(text), error["message"])
        return result


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
