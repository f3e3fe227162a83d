"""Compares Sinter's template engine with the jinja2 package, set up as Hugging Face sets it up.

    jinja_reference_test.py PROBE [SEED]

Renders snippets, chat templates and random expressions both ways: the text must be equal byte for byte, and
what jinja2 refuses must be refused. PROBE is the jinja_probe program.
"""

import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jinja_reference_cases as cases  # noqa: E402

NOW = 1_700_000_000


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class TooLarge(Exception):
    """A random expression repeats a string or a list so often that Python would fill the memory."""


class Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["*"])

    def call_binop(self, context, operator, left, right):
        for value, count in ((left, right), (right, left)):
            if isinstance(value, (str, list, tuple)) and isinstance(count, int) and len(value) * count > 1_000_000:
                raise TooLarge
        return super().call_binop(context, operator, left, right)


def reference_environment():
    env = Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda text: datetime.datetime.fromtimestamp(NOW).strftime(text)
    return env


class Probe:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8")

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"the probe died on {request!r}")
        return json.loads(answer)

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Comparison:
    def __init__(self, probe):
        self.probe = probe
        self.env = reference_environment()
        self.num_compared = 0
        self.num_failed = 0
        self.templates = {}

    def fail(self, text):
        self.num_failed += 1
        if self.num_failed <= 20:
            print(text, flush=True)

    def ours(self, template, variables):
        return self.probe.ask({"template": template, "variables": variables, "now": NOW})

    def compiled(self, template):
        if template not in self.templates:
            self.templates[template] = self.env.from_string(template)
        return self.templates[template]

    def reference(self, template, variables):
        """Text, or None when jinja2 refuses, and why."""
        try:
            text = self.compiled(template).render(**variables)
            text.encode("utf-8")
            return text, ""
        except RecursionError:
            raise
        except Exception as error:  # whatever Python raises for the expression
            return None, f"{type(error).__name__}: {error}"

    def compare(self, template, variables, may_refuse=False):
        """`may_refuse`: ours may refuse what jinja2 takes, saying that it is not supported or too large."""
        expected, reason = self.reference(template, variables)
        if reason.startswith("TooLarge"):
            return
        answer = self.ours(template, variables)
        self.num_compared += 1
        if "text" not in answer:
            # jinja2 folds the slice of a number or a dict literal to undefined; of a variable it refuses it too.
            excused = may_refuse and (answer["kind"] in ("unsupported", "limit") or "cannot be sliced" in answer["error"])
            if expected is not None and not excused:
                self.fail(f"{template!r}\n  with {variables!r}\n  jinja2: {expected!r}\n  ours:   {answer['error']}")
        elif expected is None:
            self.fail(f"{template!r}\n  with {variables!r}\n  jinja2: {reason}\n  ours:   {answer['text']!r}")
        elif answer["text"] != expected:
            self.fail(f"{template!r}\n  with {variables!r}\n  jinja2: {expected!r}\n  ours:   {answer['text']!r}")

    def expect_error(self, template, kind, part):
        start = self.probe.cpu_seconds()
        answer = self.ours(template, {})
        seconds = self.probe.cpu_seconds() - start
        self.num_compared += 1
        if answer.get("kind") != kind or part not in answer.get("error", ""):
            self.fail(f"{template!r}\n  expected {kind}: ...{part}...\n  found {answer!r:.300}")
        if seconds > 20:  # about one in a release build; sanitizers take more
            self.fail(f"{template!r}: {seconds:.1f} s")


def check_folders(comparison):
    """chat_template.jinja, tokenizer_config.json, named templates, none."""
    def render(files, tools=None, **variables):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(content if isinstance(content, str) else json.dumps(content))
            return comparison.probe.ask({"folder": folder, "messages": [{"role": "user", "content": "hé"}],
                                         "tools": tools, "add_generation_prompt": True, "variables": variables})

    def expect(what, answer, text):
        comparison.num_compared += 1
        if answer.get("text", answer) != text:
            comparison.fail(f"{what}: expected {text!r}, found {answer!r}")

    body = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ tools }}{{ add_generation_prompt }}{{ documents }}"
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "chat_template": body}
    expect("tokenizer_config.json", render({"tokenizer_config.json": config}), "<s>hé</s>NoneTrueNone")
    expect("chat_template.jinja wins",
           render({"tokenizer_config.json": config, "chat_template.jinja": "file {{ enable_thinking }}"},
                  enable_thinking=False), "file False")
    named = config | {"chat_template": [{"name": "default", "template": "plain"},
                                        {"name": "tool_use", "template": "{{ tools[0].name }}"}]}
    expect("named, no tools", render({"tokenizer_config.json": named}), "plain")
    expect("named, tools", render({"tokenizer_config.json": named}, tools=[{"name": "f"}]), "f")
    expect("none", render({"tokenizer_config.json": {"bos_token": "<s>"}}), None)
    expect("empty folder", render({}), None)
    for what, files, kind in [("broken file", {"chat_template.jinja": "a\n{% if %}"}, "format"),
                              ("number", {"tokenizer_config.json": {"chat_template": 3}}, "format"),
                              ("no default", {"tokenizer_config.json": {"chat_template": []}}, "format"),
                              ("no JSON", {"tokenizer_config.json": "{"}, "format")]:
        answer = render(files)
        comparison.num_compared += 1
        if answer.get("kind") != kind or not answer["error"].split(":")[0].endswith(tuple(files)):
            comparison.fail(f"{what}: found {answer!r}")


def main():
    warnings.simplefilter("ignore", SyntaxWarning)  # Python's, on the code that jinja2 makes
    comparison = Comparison(Probe(sys.argv[1]))
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    for template in cases.SNIPPETS:
        comparison.compare(template, cases.VARIABLES)
    for template in cases.CHAT_TEMPLATES:
        for variables in cases.chats():
            comparison.compare(template, variables)
    for template, kind, part in cases.ERRORS:
        comparison.expect_error(template, kind, part)
    check_folders(comparison)
    print(f"seed {seed}", flush=True)
    generator = cases.Generator(random.Random(seed))
    for _ in range(4000):
        template, variables = generator.template()
        comparison.compare(template, variables, may_refuse=True)
    print(f"{comparison.num_compared} compared, {comparison.num_failed} differ")
    return comparison.num_failed != 0


if __name__ == "__main__":
    sys.exit(main())
