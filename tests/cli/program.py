"""Runs the program, and makes small checkpoints for it. argv: the program, the root of the sources."""
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

GLM_5 = {
    "model_type": "glm_moe_dsa", "hidden_size": 6144, "num_hidden_layers": 78, "num_attention_heads": 64,
    "num_key_value_heads": 64, "attention_bias": False, "q_lora_rank": 2048, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64, "qk_head_dim": 256, "v_head_dim": 256, "head_dim": 64, "hidden_act": "silu",
    "intermediate_size": 12288, "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 8,
    "n_shared_experts": 1, "first_k_dense_replace": 3, "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
    "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "index_n_heads": 32,
    "index_head_dim": 128, "index_topk": 2048, "indexer_rope_interleave": True, "rope_interleave": True,
    "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 202752, "vocab_size": 154880, "tie_word_embeddings": False, "num_nextn_predict_layers": 1,
    "eos_token_id": [154820, 154827, 154829],
}  # fmt: skip


class Result:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out_bytes = completed.stdout
        self.out = completed.stdout.decode()
        self.err = completed.stderr.decode()

    def json(self):
        """stdout is one JSON object and nothing else."""
        return json.loads(self.out)


def run(*words, stdin=b"", timeout=120, **environment):
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
    """Gives each class a scratch folder with the checkpoints `bf16` and `nvfp4`."""

    @classmethod
    def setUpClass(cls):
        cls.scratch_folder = tempfile.TemporaryDirectory(prefix="sinter-cli-")
        cls.scratch = pathlib.Path(cls.scratch_folder.name)
        cls.bf16 = make_checkpoint(cls.scratch / "bf16")
        cls.nvfp4 = make_checkpoint(cls.scratch / "nvfp4", nvfp4=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch_folder.cleanup()

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
