"""Continue a prompt with a demo checkpoint, in plain PyTorch without a cache: slow, for a look at the text.

generate.py FOLDER PROMPT [--num 120] [--temperature 0.8] [--seed 0]
"""

import argparse
import json
from pathlib import Path

import torch
from check import dequantized, ours
from tokenizers import Tokenizer


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("prompt")
    parser.add_argument("--num", type=int, default=120)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    config = json.loads((args.folder / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(args.folder / "tokenizer.json"))
    model = ours(config, dequantized(args.folder))
    ids = tokenizer.encode("<|endoftext|>" + args.prompt).ids
    for _ in range(args.num):
        logits = model(torch.tensor(ids)[None])[0][0, -1]
        next_id = int(torch.multinomial((logits / args.temperature).softmax(-1), 1))
        if next_id in config["eos_token_id"]:
            break
        ids.append(next_id)
    print(tokenizer.decode(ids[1:]))


if __name__ == "__main__":
    main()
