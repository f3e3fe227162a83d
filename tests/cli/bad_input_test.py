"""Broken files and impossible wishes: each gets exit code 1 (2 for a wrong call), one line that says what and where,
and never a crash."""
import json
import struct

import program
from program import TOKENS, ProgramTest
from safetensors_bytes import read_tensors, write_tensors

EXPERT = "model.layers.2.mlp.experts.3.gate_proj"


class BadWeights(ProgramTest):
    def score_fails(self, kind, folder, says=()):
        self.fail_with(1, kind, "score", folder, "--tokens", TOKENS, says=says)

    def with_bytes(self, change):
        folder = self.copy_of(self.nvfp4)
        path = folder / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))
        return folder

    def with_header(self, change):
        def rewrite(data):
            (size,) = struct.unpack("<Q", data[:8])
            header = json.loads(data[8:8 + size])
            change(header)
            text = json.dumps(header).encode()
            text += b" " * (-len(text) % 8)
            return struct.pack("<Q", len(text)) + text + data[8 + size:]
        return self.with_bytes(rewrite)

    def with_tensors(self, change, source=None):
        folder = self.copy_of(source or self.nvfp4)
        tensors = read_tensors(folder)
        change(tensors)
        write_tensors(folder / "model.safetensors", tensors)
        return folder

    def test_files(self):
        says = ["model.safetensors"]
        self.score_fails("format", self.with_bytes(lambda data: b""), says)
        self.score_fails("format", self.with_bytes(lambda data: data[:5]), says)
        self.score_fails("format", self.with_bytes(lambda data: data[:1000]), says)  # inside the header
        self.score_fails("format", self.with_bytes(lambda data: data[:-1]), says)
        self.score_fails("format", self.with_bytes(lambda data: data + b"more"), says)
        self.score_fails("format", self.with_bytes(lambda data: b"\xff" * 8 + data[8:]), says)
        self.score_fails("format", self.with_bytes(lambda data: data[:8] + b"x" + data[9:]), says)

    def test_lying_offsets(self):
        def change(**entry):
            return lambda header: header[EXPERT + ".weight"].update(entry)
        for entry in ({"data_offsets": [0, 16384]}, {"data_offsets": [-1, 16383]}, {"data_offsets": [1 << 62, 1 << 63]},
                      {"data_offsets": [16384, 0]}, {"data_offsets": "all"}, {"shape": [1 << 40, 1 << 40]},
                      {"shape": [-128, 128]}, {"shape": 7}, {"dtype": "BF16"}, {"dtype": 3}):
            # Of two that overlap either may be named.
            self.score_fails("format", self.with_header(change(**entry)), ["model.safetensors: tensor '"])

    def test_missing_shard(self):
        folder = self.copy_of(self.nvfp4)
        names = {name: "model-00001-of-00002.safetensors" for name in read_tensors(folder)}
        names["lm_head.weight"] = "model-00002-of-00002.safetensors"
        (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
        self.score_fails("file", folder, ["00002"])  # the names count shards
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        self.score_fails("file", folder, ["model-00002-of-00002.safetensors"])
        (folder / "model-00001-of-00002.safetensors").rename(folder / "all.safetensors")
        names = {name: "all.safetensors" for name in names} | {"lm_head.weight": "../secret.safetensors"}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        self.score_fails("format", folder, ["../secret.safetensors"])

    def test_scales(self):
        def patch(name, data):
            def change(tensors):
                dtype, shape, old = tensors[name]
                tensors[name] = (dtype, shape, data + old[len(data):])
            return change
        scale, scale_2 = EXPERT + ".weight_scale", EXPERT + ".weight_scale_2"
        self.score_fails("format", self.with_tensors(patch(scale, b"\x7f")), [EXPERT, "scale", "nan"])
        self.score_fails("format", self.with_tensors(patch(scale, b"\xb8")), [EXPERT])  # negative
        for value in (float("nan"), float("inf"), -1.0):
            self.score_fails("format", self.with_tensors(patch(scale_2, struct.pack("<f", value))), [EXPERT])
        self.score_fails("format", self.with_tensors(lambda tensors: tensors.pop(scale)), [EXPERT])
        self.score_fails("format", self.with_tensors(lambda tensors: tensors.pop(scale_2)), [EXPERT])

    def test_tensors(self):
        def retype(name, dtype, shape):
            def change(tensors):
                tensors[name] = (dtype, shape, tensors[name][2])
            return change
        norm, head = "model.norm.weight", "lm_head.weight"
        self.score_fails("format", self.with_tensors(lambda tensors: tensors.pop(norm)), [norm])
        self.score_fails("format", self.with_tensors(retype(norm, "BF16", [2, 128])), [norm, "[256]", "[2, 128]"])
        self.score_fails("format", self.with_tensors(retype(head, "BF16", [256, 512])), [head])
        self.fail_with(1, "unsupported", "score", self.with_tensors(retype(head, "I16", [512, 256])), "--tokens", TOKENS,
                       says=[head])
        self.fail_with(1, "format", "inspect", self.with_tensors(lambda tensors: tensors.pop(norm)), says=[norm])

    def test_not_finite_weights_are_not_quantised(self):
        def change(tensors):
            dtype, shape, data = tensors[EXPERT + ".weight"]
            tensors[EXPERT + ".weight"] = (dtype, shape, data[:-2] + b"\xc0\x7f")
        folder = self.with_tensors(change, self.bf16)
        for name in ("nvfp4", "fp8", "fp8_block", "mxfp4"):
            self.fail_with(1, "format", "quantize", folder, self.new_path(), "--store", f"routed={name}")


class BadFolders(ProgramTest):
    def test_no_model(self):
        for verb in ("inspect", "doctor"):
            self.fail_with(1, "file", verb, "/no/such/folder", says=["/no/such/folder"])
        self.fail_with(1, "file", "inspect", self.scratch, says=["config.json"])
        self.fail_with(1, "file", "inspect", TOKENS, says=["a file"])
        self.fail_with(1, "file", "score", self.config_folder(program.GLM_5), "--tokens", TOKENS, says=["weights"])

    def test_configurations(self):
        good = json.loads((self.nvfp4 / "config.json").read_text())
        for key in ("hidden_size", "num_hidden_layers", "vocab_size", "kv_lora_rank", "n_routed_experts", "model_type"):
            self.fail_with(1, "format", "inspect", self.config_folder({k: v for k, v in good.items() if k != key}), says=[key])
        for key, value in (("hidden_size", "256"), ("hidden_size", -1), ("hidden_size", 0), ("hidden_size", 1.5),
                           ("hidden_size", 10**30), ("num_hidden_layers", 10**12), ("num_experts_per_tok", 17),
                           ("rms_norm_eps", "small"), ("index_topk", [8]), ("eos_token_id", "end"), ("rope_parameters", 3),
                           ("vocab_size", 2**40)):
            with self.subTest(key=key, value=value):
                result = program.run("inspect", self.config_folder(good | {key: value}), "--quiet", "--json")
                self.assertEqual(result.code, 1, result.out)
                self.assertIn(result.json()["error"]["kind"], ("format", "limit", "unsupported"))
                self.assertIn(key, result.err)
        self.fail_with(1, "format", "inspect", self.config_folder(good | {"n_group": 3}), says=["groups", "16"])
        self.fail_with(1, "unsupported", "inspect", self.config_folder(good | {"model_type": "glm5_next"}), says=["glm5_next"])
        self.fail_with(1, "format", "inspect", self.config_folder(good | {"n_group": 1, "topk_group": 5}), says=["topk_group"])
        both = {"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 128}}
        self.fail_with(1, "format", "inspect", self.config_folder(good | both), says=["rope_scaling"])
        for value in ("nvfp4", [], 4, False):
            self.fail_with(1, "format", "inspect", self.config_folder(good | {"quantization_config": value}),
                           says=["quantization_config"])
        for text in ("", "[]", "{", "[" * 100000, '{"a": "\\ud800"}', "\xff", '{"model_type": 1}'):
            folder = self.config_folder({})
            (folder / "config.json").write_text(text, encoding="latin-1")
            result = program.run("inspect", folder, "--quiet", "--json")
            self.assertEqual(result.code, 1)
            self.assertIn(result.json()["error"]["kind"], ("format", "limit"))

    def test_vocabularies(self):
        folder = self.copy_of(self.nvfp4)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"vocab_size": 500}))
        self.fail_with(1, "format", "score", folder, "--tokens", TOKENS, says=["embed_tokens", "500", "512"])
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer.json").write_text(json.dumps(program.byte_level_tokenizer(num_more=300)))
        self.fail_with(1, "format", "generate", folder, "--prompt", "a", says=["tokenizer.json", "512", "558"])

    def test_text_files(self):
        folder = self.copy_of(self.nvfp4)
        words = ["generate", folder, "--prompt", "a"]
        for text in ("", "{}", "[1]", '{"model": {"type": "Unigram"}}'):
            (folder / "tokenizer.json").write_text(text)
            result = program.run(*words, "--quiet", "--json")
            self.assertEqual(result.code, 1)
            self.assertIn(result.json()["error"]["kind"], ("format", "unsupported"))
            self.assertIn("tokenizer.json", result.err)
        (folder / "tokenizer.json").unlink()
        self.fail_with(1, "file", *words, says=["tokenizer.json"])

        folder = self.copy_of(self.nvfp4)
        words = ["generate", folder, "--prompt", "a", "--chat"]
        (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m }}\n{% paint %}{% endfor %}")
        result = program.run(*words, "--quiet")
        self.assertEqual(result.code, 1)
        self.assertIn("paint", result.err)
        (folder / "chat_template.jinja").write_text("{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}")
        self.fail_with(1, "limit", *words)
        (folder / "chat_template.jinja").unlink()
        self.fail_with(1, "file", *words, says=["chat_template"])

        folder = self.copy_of(self.nvfp4)
        for value in ({"temperature": "hot"}, {"top_k": -1}, {"eos_token_id": [512]}, {"do_sample": 1}):
            (folder / "generation_config.json").write_text(json.dumps(value))
            self.fail_with(1, "format", "generate", folder, "--prompt", "a", says=["generation_config.json", *value])


class BadRequests(ProgramTest):
    def test_token_files(self):
        path = self.new_path("ids.json")
        for text, kind, says in (("[1, 512]", "limit", "512"), ("[1, -1]", "format", "-1 at position 1"), ("[1, 99999999999]", "format", "99999999999 at position 1"),
                                 ("[1, 18446744073709551616]", "format", "position 1"), ("[1, 2.5]", "format", "number at position 1"),
                                 ('[1, "a"]', "format", "string at position 1"), ("[1, [2]]", "format", "array at position 1"), ("{}", "format", "object"),
                                 ("[]", "limit", "two tokens"), ("[1]", "limit", "two tokens"), ("[1, 2", "format", "byte"),
                                 (json.dumps([1] * 513), "limit", "512")):
            path.write_text(text)
            self.fail_with(1, kind, "score", self.nvfp4, "--tokens", path, says=[says, path])
        self.fail_with(1, "file", "score", self.nvfp4, "--tokens", path / "none", says=["none"])

    def test_output_paths(self):
        self.fail_with(1, "file", "score", self.nvfp4, "--tokens", TOKENS, "--logits", "/no/such/folder/x", says=["/no/such"])
        self.assertEqual(program.run("synth", self.bf16, "/proc/out").code, 1)
        link, target = self.new_path("link"), self.new_path("target")
        link.symlink_to(target)
        self.assertEqual(program.run("score", self.nvfp4, "--tokens", TOKENS, "--logits", link).code, 0)
        self.assertTrue(link.is_symlink() and target.is_file())

    def test_limits_and_parameters(self):
        words = ["generate", self.nvfp4, "--prompt", "a"]
        self.fail_with(1, "limit", *words, "--context", 10000, says=["512"])
        self.fail_with(1, "limit", "generate", self.nvfp4, "--prompt", "a" * 600, says=["600"])
        self.fail_with(1, "limit", "generate", self.nvfp4, "--prompt", "abcdef", "--context", 4)
        for option, value in (("temperature", -1), ("temperature", "nan"), ("top-p", 2), ("min-p", -0.5), ("top-k", -3),
                              ("repetition-penalty", 0)):
            self.fail_with(2, "usage", *words, f"--{option}", value)
        self.fail_with(2, "usage", "generate", self.nvfp4, "--prompt", "")
        self.fail_with(2, "usage", *words, "--chunk", 0)
        self.fail_with(2, "usage", *words, "--max-tokens", -5)
        for seed in ("-1", "18446744073709551616", "1e3"):
            self.fail_with(2, "usage", *words, "--seed", seed, says=["2^64"])
        self.fail_with(2, "usage", "score", self.nvfp4, "--tokens", TOKENS, "--window", 1, says=["--window"])
        self.fail_with(1, "limit", "kernels", "--model", self.nvfp4, "--context", 513, says=["512"])
        self.fail_with(1, "limit", "roofline", self.nvfp4, "--device", "h200", "--context", 513, says=["512"])

    def test_empty_values_and_threads(self):
        words = ["generate", self.nvfp4, "--prompt", "a"]
        for option in ("--temperature", "--moe-backend", "--system", "--threads"):
            self.fail_with(2, "usage", *words, option, "", says=[option])
        self.fail_with(2, "usage", "score", self.nvfp4, "--tokens", TOKENS, "--logits=", says=["--logits"])
        self.fail_with(2, "usage", "inspect", "", says=["inspect"])
        self.fail_with(2, "usage", *words, "--threads", 4096, says=["4096"])

    def test_an_option_is_no_value(self):
        for words in (["generate", self.nvfp4, "--prompt", "--chat"], ["generate", self.nvfp4, "--prompt", "--wrong"],
                      ["score", self.nvfp4, "--tokens", TOKENS, "--logits", "--threads"]):
            self.fail_with(2, "usage", *words, says=[words[-2], words[-1]])
        self.succeed("generate", self.nvfp4, "--prompt=--chat", "--max-tokens", 1)

    def test_logits_replace_nothing_that_is_read(self):
        folder = self.copy_of(self.nvfp4)
        before = (folder / "model.safetensors").read_bytes()
        tokens = self.new_path("tokens.json")
        tokens.write_text(TOKENS.read_text())
        for path in (folder / "model.safetensors", folder / "logits.safetensors", tokens):
            self.fail_with(2, "usage", "score", folder, "--tokens", tokens, "--logits", path, says=[path])
        self.assertEqual((folder / "model.safetensors").read_bytes(), before)
        self.assertEqual(tokens.read_text(), TOKENS.read_text())

    def test_integers_are_decimal(self):
        for text in ("010", "0x10", "1e3", "+1", "1'0", "1.5"):
            self.fail_with(2, "usage", "roofline", self.nvfp4, "--device", "h200", "--tp", text, says=["--tp", text])
            self.fail_with(2, "usage", "generate", self.nvfp4, "--prompt", "a", "--top-k", text, says=["--top-k"])

    def test_options_without_effect(self):
        for verb, option in (("kernels", "--tokens=2"), ("kernels", "--context=2"), ("kernels", "--store=all=fp8"),
                             ("doctor", "--store=all=fp8")):
            self.fail_with(2, "usage", verb, option, says=[option.split("=")[0]])

    def test_tools(self):
        for text, found in (("{}", "object"), ("[1]", "array"), ('"a"', "string")):
            path = self.new_path("tools.json")
            path.write_text(text)
            self.fail_with(1, "format", "generate", self.nvfp4, "--chat", "--prompt", "a", "--tools", path, says=[path, found])

    def test_links_in_a_circle(self):
        one, other = self.new_path("one"), self.new_path("other")
        one.symlink_to(other)
        other.symlink_to(one)
        self.fail_with(1, "file", "score", self.nvfp4, "--tokens", TOKENS, "--logits", one, says=["circle"])
        self.assertTrue(one.is_symlink() and other.is_symlink())

    def test_stores(self):
        for store in (",", "routed=nvfp4,", "routed=nvfp4,,head=bf16", "routed=nvfp4,routed=fp8", "routed", "routed=int4", "experts=fp8"):
            self.fail_with(2, "usage", "inspect", self.nvfp4, "--store", store)

    def test_a_prompt_is_looked_at_before_weights_are_read(self):
        folder = self.copy_of(self.nvfp4)
        (folder / "tokenizer.json").unlink()
        tensors = read_tensors(folder)
        tensors.pop("lm_head.weight")
        write_tensors(folder / "model.safetensors", tensors)
        self.fail_with(1, "format", "score", folder, "--tokens", TOKENS, says=["lm_head"])
        self.fail_with(1, "file", "generate", folder, "--prompt", "a", says=["tokenizer.json"])


if __name__ == "__main__":
    program.main()
