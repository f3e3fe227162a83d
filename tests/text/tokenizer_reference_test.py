"""Compares Sinter's tokenizer with the tokenizers package.

    tokenizer_reference_test.py PROBE [SEED]

Trains a tokenizer with the pre-tokenizers of each family on text made here, saves it as tokenizer.json,
and compares ids and decoded text. PROBE is the tokenizer_probe program.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

GLM = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
       r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = GLM.replace(r"\p{N}{1,3}", r"\p{N}")
# As tiktoken has it. Oniguruma reads the '+' of {1,3}+ as one more repeat.
GPT4 = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", r"[一-龥\u3040-ゟ゠-\x{30ff}]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
            r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
HAN = [r"\p{Han}+", r"[\p{Hiragana}\p{Katakana}]+", r"\p{^L}", r"(?<=\p{Ll})\p{Lu}\p{L}*", r"\h{2,}|\H\v", r"[a-f]{,2}x{2}?"]

WORDS = """the of and to in is that it was for on as with his they be at one have this from or had by hot but some what
there we can out other were all your when up use word how said an each she which do their time if will way about many
I'm you're WE'LL they'Ve it'S don'T naïve café über straße ſtraße Éclair garçon ﬁne ﬂow Ǆ ǅ ǆ İstanbul ıspanak""".split()
SCRIPTS = ["Съешь ещё этих мягких французских булок", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "敏捷的棕色狐狸跳过懒狗。",
           "いろはにほへとちりぬるを ガギグゲゴ", "키스의 고유조건은 입술끼리 만나야", "נקודה עם נִקּוּד", "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ",
           "ऋषियों को सताने वाले दुष्ट राक्षसों", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า", "གངས་ཅན", "ውሃ ሲፈስ", "Ⅷ ½ ² ① ൧൨൩ ۱۲۳ १२३"]
CODE = ["for (int i = 0; i < n; ++i) {\n\t\tx[i] += y[i] * 3.14159e-10f;\n\t}\n", "def f(a, *b, **c):\n    return {**c, 'k': a}\r\n",
        "<div class=\"x\">&nbsp;</div>\n", "SELECT * FROM t WHERE a!=1 -- ok\n", "{\"a\":[1,2.5e3,null,true]}", "#include <stdio.h>\n",
        "https://example.org/a/b?c=d&e=%20f#g", "0xDEADBEEF 1234567890 12 1_000_000"]
EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "😀😃", "❤️", "①", "\u200d", "\ufeff", "\u180e", "\u3000", "\u00a0", "\u2028", "\u0085"]
MARKS = ["e\u0301", "a\u0323\u0307", "\u1100\u1161\u11a8", "\uac00\u11a8", "\u0958", "\u212b", "\u0344", "q\u0307\u0323",
         "\U00011935\U00011930", "a\u0898\u0301", "\u0f73", "ا\u0653", "\u2126", "x\u1dfa\u0323", "\u09c7\u09be"]


def random_text(rng, size):
    parts = []
    while size > 0:
        kind = rng.randrange(12)
        if kind < 4: part = rng.choice(WORDS)
        elif kind == 4: part = rng.choice(SCRIPTS)
        elif kind == 5: part = rng.choice(CODE)
        elif kind == 6: part = rng.choice(EMOJI)
        elif kind == 7: part = rng.choice(MARKS)
        elif kind == 8: part = rng.choice([" ", "\n", "\t", "\r\n", " \n", "\u00a0"]) * rng.randrange(1, 40)
        elif kind == 9: part = "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 12)))
        elif kind == 10: part = "".join(chr(random_code_point(rng)) for _ in range(rng.randrange(1, 6)))
        else: part = rng.choice("abcxyzABC'\"-_.,;:!?/\\|@#$%^&*()[]{}<>~`") * rng.randrange(1, 60)
        parts.append(part if rng.random() < 0.3 else part + " ")
        size -= len(part)
    return "".join(parts)


def random_code_point(rng):
    while True:
        c = rng.randrange(rng.choice([0x250, 0x3000, 0x20000, 0x110000]))
        if not 0xD800 <= c < 0xE000:
            return c


def broken(rng, text):
    data = bytearray(text.encode())
    for _ in range(len(data) // 12):
        i = rng.randrange(len(data))
        if rng.random() < 0.5: data[i] = rng.randrange(256)
        else: data[i:i + 1] = rng.choice([b"", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe0\x80"])
    return bytes(data)


def isolated(*patterns):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
                                   + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def families():
    """Name, pre-tokenizer, normalizer, whether whole pieces are looked up before merging."""
    yield "glm", isolated(GLM), None, True
    yield "qwen", isolated(QWEN), normalizers.NFC(), False
    yield "deepseek", isolated(*DEEPSEEK), None, False
    yield "gpt2", pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True), None, False
    yield "gpt4", isolated(GPT4), None, True
    yield "o200k", isolated(O200K), None, True
    yield "scripts", isolated(*HAN), normalizers.Sequence([normalizers.NFC()]), False
    yield "digits", pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
    ]), normalizers.Sequence([normalizers.Replace(Regex(r"\s{3,}"), "__"), normalizers.Replace("<", "«"), normalizers.Prepend("_")]), False
    for behavior in ["removed", "merged_with_previous", "merged_with_next", "contiguous"]:
        for invert in [False, True]:
            split = pre_tokenizers.Split(Regex(r"\p{P}|\s|x*"), behavior, invert=invert)
            text = pre_tokenizers.Split("e", behavior, invert=invert)
            yield f"{behavior}{'_inverted' * invert}", pre_tokenizers.Sequence(
                [split, text, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]), None, False


def train(folder, corpus, pre_tokenizer, normalizer, ignore_merges, merges_as_strings):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None: tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>", "<｜begin▁of▁sentence｜>"],
        show_progress=False))
    tokenizer.add_special_tokens([AddedToken("<|user|>", special=True, normalized=False), AddedToken("<|user", special=True),
                                  AddedToken("<|pad|>", special=True, lstrip=True, rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>"), AddedToken("caf\u00e9", single_word=True),
                          AddedToken("  ", rstrip=True, normalized=False), AddedToken("e\u0301e", normalized=True)])
    bos = "<｜begin▁of▁sentence｜>"
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single=f"{bos} $A <|endoftext|>", special_tokens=[(bos, tokenizer.token_to_id(bos)), ("<|endoftext|>", 0)])])
    path = os.path.join(folder, "tokenizer.json")
    data = json.loads(tokenizer.to_str())
    data["model"]["ignore_merges"] = ignore_merges
    if merges_as_strings: data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=merges_as_strings)
    return Tokenizer.from_file(path)


class Probe:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply: raise SystemExit(f"{request.get('op')}: {reply['error']}")
        return reply


def fail(name, what, text, ours, theirs):
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    raise SystemExit(f"{name}: {what} differ at {at}: ours {ours[max(0, at - 3):at + 5]}, theirs {theirs[max(0, at - 3):at + 5]}, "
                     f"text {text[:200]!r}")


def compare_encode(name, probe, tokenizer, data, special=(True, False)):
    text = data.decode("utf-8", errors="replace")
    for allow_special in special:
        tokenizer.encode_special_tokens = not allow_special
        theirs = tokenizer.encode(text, add_special_tokens=False).ids
        ours = probe.ask(op="encode", hex=data.hex(), allow_special=allow_special)["ids"]
        if ours != theirs: fail(name, f"ids (allow_special={allow_special})", text, ours, theirs)
    tokenizer.encode_special_tokens = False
    return theirs


def compare_decode(name, probe, tokenizer, ids):
    for skip_special in [False, True]:
        theirs = tokenizer.decode(ids, skip_special_tokens=skip_special)
        reply = probe.ask(op="decode", ids=ids, skip_special=skip_special)
        ours = bytes.fromhex(reply["hex"]).decode()
        if ours != theirs: fail(name, "decoded texts", repr(ids[:50]), ours, theirs)
        pieces = [bytes.fromhex(piece).decode() for piece in reply["pieces"]]  # throws on a split character
        if "".join(pieces) != theirs: fail(name, "incremental texts", repr(ids[:50]), "".join(pieces), theirs)


def main():
    probe = Probe(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print("seed", seed, flush=True)
    rng = random.Random(seed)
    corpus = [random_text(rng, 400) for _ in range(300)]
    specials = ["<|user|>", "<|user", "  <|pad|> \n ", "<think>", "</think>", "caf\u00e9", "cafe\u0301", " caf\u00e9s", "      ",
                "<|endoftext|>", "<｜begin▁of▁sentence｜>", "e\u0301e", "<|user|><|user|>", "\u00e9e"]
    # All planes with characters; the rest is unassigned or private use throughout.
    every = [chr(c) for c in [*range(0xD800), *range(0xE000, 0x32400), *range(0xDFFF0, 0xE0200), *range(0x10FF00, 0x110000)]]
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, pre_tokenizer, normalizer, ignore_merges) in enumerate(families()):
            tokenizer = train(folder, corpus, pre_tokenizer, normalizer, ignore_merges, number % 2 == 1)
            size = probe.ask(op="load", folder=folder)["vocab_size"]
            assert size == tokenizer.get_vocab_size(), (size, tokenizer.get_vocab_size())
            texts = [random_text(rng, 3000) for _ in range(6 if number < 8 else 1)]
            texts += ["".join(rng.choice([random_text(rng, 8), rng.choice(specials)]) for _ in range(200)) for _ in range(2)]
            texts += ["", " ", "\n", "a", " " * 2000 + "x", "\n" * 1000, "ab" * 1000, "'", "\ufeff"]
            for text in texts:
                ids = compare_encode(name, probe, tokenizer, text.encode())
                compare_decode(name, probe, tokenizer, ids)
                compare_encode(name, probe, tokenizer, broken(rng, text or "x"), [True])
            prompt = probe.ask(op="encode", hex=texts[0].encode().hex(), prompt=True)["ids"]
            if prompt != tokenizer.encode(texts[0]).ids: fail(name, "prompt ids", texts[0], prompt, tokenizer.encode(texts[0]).ids)
            for _ in range(20):
                compare_decode(name, probe, tokenizer, [rng.randrange(size) for _ in range(300)])
            if name in ("glm", "deepseek", "scripts"):
                compare_encode(name, probe, tokenizer, "".join(every).encode(), [True])
            if name in ("qwen", "o200k"):
                rng.shuffle(every)
                compare_encode(name, probe, tokenizer, " a".join(every[:20000]).encode(), [True])
            print(name, "ok", flush=True)


if __name__ == "__main__":
    main()
