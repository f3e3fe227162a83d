"""Every verb does what it says, and its JSON has the keys that programs rely on."""
import json
import math
import os
import pathlib
import signal
import subprocess

import numpy as np
import program
from program import GLM_5, PROGRAM, REFERENCE, TOKENS, ProgramTest, run
from safetensors_bytes import module_hashes, read_tensors

VERBS = ["doctor", "inspect", "roofline", "kernels", "compile", "generate", "score", "synth", "quantize"]


def logits_of(path):
    dtype, shape, data = read_tensors(path.parent)["logits"]
    assert dtype == "F32"
    return np.frombuffer(data, np.float32).reshape(shape)


def relative_error(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


class Frame(ProgramTest):
    def test_help_and_version(self):
        self.assertRegex(self.succeed("--version").out, r"^sinter \d+\.\d+\.\d+\n$")
        text = self.succeed("--help").out
        for verb in VERBS:
            self.assertIn(verb, text)
            verb_help = self.succeed(verb, "--help").out
            self.assertIn("--json", verb_help)
            self.assertIn("--quiet", verb_help)

    def test_wrong_calls(self):
        self.assertEqual(run().code, 2)
        self.fail_with(2, "usage", "paint", says=["'paint'", *VERBS])
        self.fail_with(2, "usage", "inspect", says=["MODEL"])
        self.fail_with(2, "usage", "inspect", self.bf16, "--colour", says=["--colour"])
        self.fail_with(2, "usage", "roofline", self.bf16, "--device", "abacus", says=["'abacus'", "rtx-pro-6000"])
        self.fail_with(2, "usage", "roofline", self.bf16, "--device", "h200", "--tp", "0", says=["--tp"])
        self.fail_with(2, "usage", "inspect", self.bf16, "--store", "routed=int3", says=["int3", "nvfp4"])
        self.fail_with(2, "usage", "kernels", "--op", "paint", says=["'paint'", "moe_ffn"])
        self.fail_with(2, "usage", "score", self.bf16, says=["--tokens", "--text"])
        self.fail_with(2, "usage", "generate", self.bf16, says=["--prompt"])
        self.fail_with(2, "usage", "generate", self.bf16, "--prompt", "a", "--system", "b", says=["--chat"])

    def test_unwritable_stdout_is_an_error(self):
        if not pathlib.Path("/dev/full").exists():
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            code = subprocess.run([PROGRAM, "inspect", self.bf16], stdout=full, stderr=subprocess.DEVNULL).returncode
        self.assertEqual(code, 1)

    def test_shipped_models_have_names(self):
        (self.scratch / "models").mkdir()
        (self.scratch / "models/demo").symlink_to(self.nvfp4)
        report = self.succeed("inspect", "demo", "--json", SINTER_MODELS=str(self.scratch / "models")).json()
        self.assertEqual(report["hidden_size"], 256)
        report = self.succeed("inspect", "glm-5", "--json", SINTER_MODELS=str(program.ROOT / "models")).json()
        self.assertEqual(report["num_layers"], 78)
        self.fail_with(1, "file", "inspect", "glm-6", says=["glm-6", "SINTER_MODELS"])


class Planning(ProgramTest):
    def test_roofline_of_glm_5(self):
        folder = self.config_folder(GLM_5)
        for store, gigabytes, milliseconds in (("routed=nvfp4", 49.108, 3.4255), ("all=nvfp4", 22.969, 1.602)):
            report = self.succeed("roofline", folder, "--device", "rtx-pro-6000", "--tp", "8", "--context", "0", "--store",
                                  store, "--json").json()
            self.assertAlmostEqual(report["bytes"] / 1e9 / gigabytes, 1, delta=0.005)
            self.assertAlmostEqual(report["time_us"] / 1e3 / milliseconds, 1, delta=0.005)
            self.assertAlmostEqual(report["tokens_per_s"] * report["time_us"], 1e6, delta=1)
            self.assertAlmostEqual(sum(part["bytes"] for part in report["parts"]), report["bytes"], delta=1)
            self.assertAlmostEqual(sum(part["time_us"] for part in report["parts"]), report["time_us"], delta=1e-3)
            self.assertLessEqual({"routed", "shared", "dense", "attention", "indexer", "router", "head"},
                                 {part["name"] for part in report["parts"]})
        text = self.succeed("roofline", folder, "--device", "dgx-spark").out
        self.assertIn("does not fit", text)

    def test_roofline_of_this_cpu(self):
        report = self.succeed("roofline", self.nvfp4, "--device", "cpu", "--json").json()
        self.assertGreater(report["device_gb_per_s"], 0.1)
        self.assertTrue(report["fits"])

    def test_inspect(self):
        report = self.succeed("inspect", self.nvfp4, "--json").json()
        self.assertEqual(report["source"], "checkpoint")
        self.assertEqual(report["bytes"], sum(part["bytes"] for part in report["parts"]))
        formats = {part["name"]: [share["format"] for share in part["formats"]] for part in report["parts"]}
        self.assertEqual(formats["routed"], ["nvfp4"])
        self.assertEqual(formats["attention"], ["bf16"])
        stored = sum(len(data) for _, _, data in read_tensors(self.nvfp4).values())
        self.assertEqual(report["bytes"] + report["other_bytes"], stored)
        self.assertEqual(report["kv_bytes_per_token"], 4 * (64 + 16 + 32) * 2)
        self.assertIn("nvfp4", self.succeed("inspect", self.nvfp4).out)

    def test_kernels(self):
        rows = self.succeed("kernels", "--json").json()["kernels"]
        self.assertEqual(len({row["name"] for row in rows}), len(rows))
        for op in {row["op"] for row in rows}:
            self.assertTrue(any(row["can_run"] for row in rows if row["op"] == op), op)
        for row in rows:
            self.assertEqual(row["can_run"], row["reason"] == "", row)
        only = self.succeed("kernels", "--op", "moe_ffn", "--json").json()["kernels"]
        self.assertEqual(only, [row for row in rows if row["op"] == "moe_ffn"])
        problems = self.succeed("kernels", "--model", self.nvfp4, "--json").json()["problems"]
        self.assertIn("routed experts", {problem["where"] for problem in problems})
        for problem in problems:
            self.assertEqual(sum(kernel["chosen"] for kernel in problem["kernels"]), 1, problem)

    def test_kernels_of_devices_that_are_not_here(self):
        rows = self.succeed("kernels", "--device", "h200", "--json").json()["kernels"]
        for row in rows:
            if row["name"].startswith("cpu."):
                self.assertFalse(row["can_run"], row)
                self.assertIn("this device is a GPU", row["reason"])
        rows = self.succeed("kernels", "--device", "cpu", "--json").json()["kernels"]
        self.assertTrue(any(row["can_run"] for row in rows))
        self.fail_with(2, "usage", "kernels", "--device", "sm_42", says=["'sm_42'", "sm_90a", "h200"])

    def test_wrong_devices(self):
        self.fail_with(2, "usage", "generate", self.nvfp4, "--prompt", "a", "--device", "tpu", says=["'tpu'", "gpu:N"])
        self.fail_with(2, "usage", "compile", self.nvfp4, "--arch", "sm_42", says=["'sm_42'", "sm_90a", "h200"])
        self.fail_with(2, "usage", "compile", self.nvfp4)

    def test_doctor(self):
        report = self.succeed("doctor", self.nvfp4, "--json").json()
        self.assertTrue(report["model"]["can_run"])
        self.assertEqual(report["model"]["longest_context"], 512)
        for finding in report["machine"] + report["model"]["findings"]:
            self.assertIn(finding["level"], ("note", "ok", "warn"))
        self.assertIn("```text\nsinter ", self.succeed("doctor", "--markdown").out)
        # 1.5 TB of bf16 fit no machine that this is tested on.
        result = run("doctor", self.config_folder(GLM_5), "--json")
        self.assertEqual(result.code, 1)
        self.assertFalse(result.json()["model"]["can_run"])


class Scoring(ProgramTest):
    def test_logits_of_the_reference(self):
        path = self.new_path("logits.safetensors")
        report = self.succeed("score", self.nvfp4, "--tokens", TOKENS, "--logits", path, "--reference", "--json").json()
        logits = logits_of(path)
        with (REFERENCE / "glm_moe_dsa.safetensors").open("rb"):
            scratch = self.new_path("reference")
            scratch.mkdir()
            (scratch / "r.safetensors").symlink_to(REFERENCE / "glm_moe_dsa.safetensors")
            _, shape, data = read_tensors(scratch)["logits_nvfp4"]
        self.assertLess(relative_error(logits, np.frombuffer(data, np.float32).reshape(shape)), 2e-3)

        ids = json.loads(TOKENS.read_text())
        rows = logits.astype(np.float64)
        logprobs = rows - np.log(np.exp(rows - rows.max(1, keepdims=True)).sum(1, keepdims=True)) - rows.max(1, keepdims=True)
        nll = -np.mean([logprobs[t, ids[t + 1]] for t in range(len(ids) - 1)])
        self.assertEqual(report["num_tokens"], len(ids))
        self.assertAlmostEqual(report["nll"], nll, delta=1e-9)
        self.assertAlmostEqual(report["perplexity"], math.exp(nll), delta=1e-6 * math.exp(nll))

        for chunk in (1, 7):
            again = self.new_path("logits.safetensors")
            self.succeed("score", self.nvfp4, "--tokens", TOKENS, "--logits", again, "--reference", "--chunk", chunk)
            self.assertLess(relative_error(logits_of(again), logits), 1e-4)

    def test_windows_do_not_see_each_other(self):
        ids = json.loads(TOKENS.read_text())
        first = self.new_path("ids.json")
        first.write_text(json.dumps(ids[:16]))
        alone = self.succeed("score", self.bf16, "--tokens", first, "--reference", "--json").json()
        both = self.succeed("score", self.bf16, "--tokens", TOKENS, "--window", 16, "--reference", "--json").json()
        self.assertEqual(both["num_predicted"], len(ids) - 3)
        np.testing.assert_allclose(both["logprobs"][:16], alone["logprobs"], atol=1e-6)
        self.assertEqual(both["logprobs"][16], 0)

    def test_text(self):
        text = self.new_path("text")
        text.write_text("héllo")
        self.assertEqual(self.succeed("score", self.bf16, "--text", text, "--json").json()["num_tokens"], 6)


class Generating(ProgramTest):
    WORDS = ["--prompt", "Once upon", "--max-tokens", "24", "--ignore-eos"]

    def test_json_and_stream_agree(self):
        report = self.succeed("generate", self.nvfp4, *self.WORDS, "--json").json()
        self.assertLessEqual({"text", "tokens", "num_prompt_tokens", "prefill_tokens_per_s", "decode_tokens_per_s"}, set(report))
        self.assertEqual(report["num_prompt_tokens"], 9)
        self.assertEqual(len(report["tokens"]), 24)
        self.assertGreater(report["decode_tokens_per_s"], 0)
        result = self.succeed("generate", self.nvfp4, *self.WORDS)
        self.assertEqual(result.out.removesuffix("\n"), report["text"].removesuffix("\n"))
        self.assertIn("tokens/s", result.err)
        self.assertEqual(self.succeed("generate", self.nvfp4, *self.WORDS, "--quiet").err, "")

    def test_token_ids_need_no_tokenizer(self):
        num_ids = len(json.loads(pathlib.Path(TOKENS).read_text()))
        words = ["--tokens", TOKENS, "--max-tokens", 5, "--ignore-eos", "--temperature", 0]
        report = self.succeed("generate", self.nvfp4, *words, "--json").json()
        self.assertEqual(report["num_prompt_tokens"], num_ids)
        self.assertNotEqual(report["text"], "")
        out = self.new_path()
        self.succeed("synth", self.bf16, out)
        (out / "tokenizer.json").unlink(missing_ok=True)
        report = self.succeed("generate", out, *words, "--json").json()
        self.assertEqual((report["text"], len(report["tokens"])), ("", 5))
        ids = self.succeed("generate", out, *words).out.split()
        self.assertEqual([int(word) for word in ids], report["tokens"])
        self.fail_with(2, "usage", "generate", out, *words, "--prompt", "a")
        self.fail_with(2, "usage", "generate", self.nvfp4, *words, "--chat", says=["--tokens"])

    def test_random_weights_for_a_configuration(self):
        folder = self.config_folder(json.loads((self.bf16 / "config.json").read_text()))
        words = [folder, "--tokens", TOKENS, "--json"]
        first, again, other = (self.succeed("score", *words, "--random-weights", seed).json() for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first["nll"], other["nll"])
        self.assertEqual(len(self.succeed("generate", *words, "--random-weights", 1, "--max-tokens", 3,
                                          "--ignore-eos").json()["tokens"]), 3)
        self.fail_with(1, "file", "score", folder, "--tokens", TOKENS, says=["config.json"])
        self.fail_with(2, "usage", "score", self.bf16, "--tokens", TOKENS, "--random-weights", 1, says=["has weights"])

    def test_equal_from_run_to_run_and_for_any_number_of_threads(self):
        texts = {self.succeed("generate", self.nvfp4, *self.WORDS, "--threads", threads, "--temperature", "0.9", "--seed", 5,
                              "--json").json()["text"] for threads in (1, 2, 3, 2)}
        self.assertEqual(len(texts), 1)

    def test_sampling_defaults_of_the_checkpoint_are_said_and_overridden(self):
        folder = self.copy_of(self.nvfp4)
        (folder / "generation_config.json").write_text(json.dumps({"temperature": 0.25, "top_k": 3, "eos_token_id": [1]}))
        result = self.succeed("generate", folder, *self.WORDS)
        self.assertIn("temperature 0.25, top_k 3", result.err)
        greedy = [self.succeed("generate", folder, *self.WORDS, "--temperature", 0, "--seed", seed).out for seed in (1, 2)]
        self.assertEqual(greedy[0], greedy[1])

    def test_stop_ids_end_the_text(self):
        greedy = [*self.WORDS, "--temperature", 0, "--json"]
        tokens = self.succeed("generate", self.nvfp4, *greedy).json()["tokens"]
        folder = self.copy_of(self.nvfp4)
        config = json.loads((folder / "config.json").read_text()) | {"eos_token_id": [tokens[5]]}
        (folder / "config.json").write_text(json.dumps(config))
        words = [word for word in greedy if word != "--ignore-eos"]
        report = self.succeed("generate", folder, *words).json()
        self.assertEqual(report["tokens"], tokens[:tokens.index(tokens[5])])
        self.assertEqual(report["finish_reason"], "stop")

    def test_chat_and_stdin(self):
        words = ["--max-tokens", "4", "--json"]
        plain = self.succeed("generate", self.bf16, "--prompt", "-", *words, stdin=b"<|user|>user: hi\n").json()
        chat = self.succeed("generate", self.bf16, "--chat", "--prompt", "hi", *words).json()
        self.assertEqual(chat["num_prompt_tokens"], plain["num_prompt_tokens"])
        self.assertEqual(chat["tokens"], plain["tokens"])
        more = self.succeed("generate", self.bf16, "--chat", "--prompt", "hi", "--system", "Be kind", *words).json()
        self.assertEqual(more["num_prompt_tokens"], chat["num_prompt_tokens"] + len("system: Be kind\n") + 1)

    def test_a_forced_backend_is_used_or_refused(self):
        self.succeed("generate", self.nvfp4, *self.WORDS, "--moe-backend", "cpu.moe_ffn_plain")
        self.fail_with(2, "usage", "generate", self.nvfp4, *self.WORDS, "--moe-backend", "gpu.magic", says=["gpu.magic"])

    def test_interrupt_ends_cleanly(self):
        child = subprocess.Popen([PROGRAM, "generate", self.bf16, "--prompt", "a", "--max-tokens", "480", "--ignore-eos",
                                  "--reference", "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = os.read(child.stdout.fileno(), 1)
        child.send_signal(signal.SIGINT)
        rest, errors = child.communicate(timeout=600)
        self.assertEqual(child.returncode, 130, errors)
        self.assertIn(b"(cancelled)", errors)
        self.assertTrue((first + rest).endswith(b"\n"))


class Writing(ProgramTest):
    def test_synth_makes_what_is_asked(self):
        out = self.new_path()
        store = "routed=nvfp4,attention=fp8,shared=fp8_block,dense=mxfp4,indexer=f16,head=f32"
        report = self.succeed("synth", self.bf16, "--out", out, "--store", store, "--seed", 3, "--json").json()
        self.assertEqual(report["num_tensors"], len(read_tensors(out)))
        inspected = self.succeed("inspect", out, "--json").json()
        self.assertEqual(report["num_parameters"], inspected["num_parameters"])
        formats = {part["name"]: part["formats"][0]["format"] for part in inspected["parts"]}
        for entry in store.split(","):
            part, name = entry.split("=")
            self.assertEqual(formats[part], name)
        # Signals keep their size: random logits of variance about 1 say nothing, so every token costs about log V.
        nll = self.succeed("score", out, "--tokens", TOKENS, "--json").json()["nll"]
        self.assertLess(abs(nll - math.log(512)), 1.5)
        # The configuration alone says the same.
        folder = self.config_folder(json.loads((out / "config.json").read_text()))
        planned = self.succeed("inspect", folder, "--json").json()
        self.assertEqual({part["name"]: part["formats"][0]["format"] for part in planned["parts"]
                          if part["name"] in ("routed", "attention", "shared", "dense")},
                         {part: formats[part] for part in ("routed", "attention", "shared", "dense")})

    def test_synth_depends_on_the_seed_alone(self):
        outs = [self.new_path() for _ in range(3)]
        for out, seed in zip(outs, (1, 1, 2)):
            self.succeed("synth", self.bf16, out, "--store", "all=nvfp4", "--seed", seed, "--layers", 2)
        first, same, other = (read_tensors(out) for out in outs)
        self.assertEqual(first, same)
        self.assertNotEqual(first, other)
        self.assertEqual(max(int(name.split(".")[2]) for name in first if ".layers." in name), 1)
        self.succeed("score", outs[0], "--tokens", TOKENS)
        self.fail_with(1, "file", "synth", self.bf16, outs[0], says=["empty"])
        self.fail_with(1, "file", "synth", self.bf16, self.bf16 / "config.json", says=["a file"])
        self.fail_with(2, "usage", "synth", self.bf16, self.new_path(), "--layers", 99, says=["--layers"])

    def test_synth_asks_for_disk_space_first(self):
        out = self.new_path()
        self.fail_with(1, "file", "synth", self.config_folder(GLM_5 | {"num_hidden_layers": 4000}), out, says=["free disk space"])
        self.assertEqual(list(out.iterdir()), [])

    def test_quantize_gives_modelopts_bytes(self):
        out = self.new_path()
        report = self.succeed("quantize", self.bf16, "--out", out, "--store", "all=nvfp4,router=bf16,head=bf16", "--json").json()
        expected = json.loads((program.ROOT / "tests/cli/modelopt_hashes.json").read_text())
        self.assertEqual(module_hashes(out), expected)
        self.assertEqual(report["num_quantized"], len(expected))
        self.assertLess(report["relative_error"], 0.12)
        before, after = read_tensors(self.bf16), read_tensors(out)
        for name in before:
            if name.removesuffix(".weight") not in expected:
                self.assertEqual(after[name], before[name], name)
        self.assertEqual((out / "tokenizer.json").read_bytes(), (self.bf16 / "tokenizer.json").read_bytes())
        self.assertTrue((out / "chat_template.jinja").exists())
        config = json.loads((out / "config.json").read_text())
        self.assertEqual(config["quantization_config"]["quant_algo"], "W4A16_NVFP4")
        quantization = json.loads((out / "hf_quant_config.json").read_text())["quantization"]
        self.assertEqual(quantization["group_size"], 16)
        self.assertIn("lm_head", quantization["exclude_modules"])
        self.succeed("generate", out, "--prompt", "a", "--max-tokens", 2)

    def test_quantize_to_other_formats(self):
        for name, most in (("fp8", 0.03), ("fp8_block", 0.03), ("mxfp4", 0.14)):
            out = self.new_path()
            report = self.succeed("quantize", self.bf16, out, "--store", f"routed={name}", "--json").json()
            self.assertLess(report["relative_error"], most)
            routed = self.succeed("inspect", out, "--json").json()["parts"][0]
            self.assertEqual([share["format"] for share in routed["formats"]], [name])

    def test_quantize_refuses(self):
        self.fail_with(1, "unsupported", "quantize", self.nvfp4, self.new_path(), says=["nvfp4", "experts.0"])
        self.fail_with(2, "usage", "quantize", self.bf16, self.new_path(), "--store", "routed=bf16")
        self.fail_with(1, "file", "quantize", self.config_folder(GLM_5), self.new_path(), says=["weights"])


if __name__ == "__main__":
    program.main()
