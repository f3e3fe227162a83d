"""Rules of the tree that a compiler does not check. Usage: check_tree.py ROOT | --self-test

Layers: an #include points to a folder of smaller number (src/layers.txt) or stays in its own.
Size: no source file over 1,000 lines. Names: no utils, common, misc, helpers, v2, new, fast, optimized.
Architecture numbers are compared in src/device only. Links and paths in documents exist.
"""
import pathlib
import re
import sys
import tempfile

SOURCE_SUFFIXES = {".h", ".hpp", ".inc", ".cc", ".cpp", ".cu", ".cuh", ".py"}
BAD_NAMES = {"utils", "util", "common", "misc", "helpers", "helper", "v2", "new", "fast", "optimized"}
MAX_LINES = 1000
CODE = {".h", ".hpp", ".inc", ".cc", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'\s*(?:#|%:)\s*include\s*(?:/\*.*?\*/\s*)?([<"])([^">]+)[">]')


def read_layers(root):
    layers = {}
    for line in (root / "src/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            number, folder = line.split()
            layers[folder] = int(number)
    return layers


def check_layers(root):
    layers = read_layers(root)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in CODE:
            continue
        folder = path.relative_to(root / "src").parts[0]
        if folder not in layers:
            yield f"{path.relative_to(root)}: folder '{folder}' has no layer in src/layers.txt"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(2).split("/")[0]
            if match.group(1) == "<" and target not in layers:
                continue  # a library's
            # Device text finds its headers from src/kernels, and knows no others.
            is_device = path.suffix == ".cu" or path.parent.relative_to(root / "src").as_posix() == "kernels/gpu"
            if is_device and target == "gpu":
                continue
            where = f"{path.relative_to(root)}:{number}"
            if target not in layers:
                yield f"{where}: include \"{match.group(2)}\" does not start with a folder of src/layers.txt"
            elif target != folder and layers[target] >= layers[folder]:
                yield (f"{where}: {folder} (layer {layers[folder]}) includes {target} (layer {layers[target]}); "
                       f"an include may only point to a smaller number")


def source_files(root):
    for top in ("src", "include", "tests", "tools", "benchmarks"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES:
                yield path


def check_files(root):
    for path in source_files(root):
        lines = path.read_text().count("\n")
        if lines > MAX_LINES:
            yield f"{path.relative_to(root)}: {lines} lines, over {MAX_LINES}: split it"
        if BAD_NAMES & set(re.split(r"[_.]", path.name)):
            yield f"{path.relative_to(root)}: the name says nothing about the content"


def check_architecture_numbers(root):
    number = r"(\d{2,}|kSm\d+)"
    name = r"(__CUDA_ARCH__|\barch\w*\b|\bsm\b|compute_capability\w*)"
    pattern = re.compile(rf"{name}\s*(==|!=|<=|>=|<|>)\s*{number}|\b\d{{2,}}\s*(==|!=|<=|>=|<|>)\s*{name}"
                         r"|\bmajor\s*(==|!=|<=|>=|<|>)\s*\d")
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in CODE and path.relative_to(root / "src").parts[0] != "device":
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if pattern.search(line):
                    yield f"{path.relative_to(root)}:{number}: compares an architecture number outside src/device"


def check_links(root):
    documents = list(root.glob("*.md")) + list((root / "docs").rglob("*.md")) + list((root / "models").rglob("*.md"))
    for document in documents:
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
            if not target.startswith(("http://", "https://", "mailto:")) and not (document.parent / target).exists():
                yield f"{document.relative_to(root)}: link to '{target}', which does not exist"


CHECKS = [check_layers, check_files, check_architecture_numbers, check_links]


def violations(root):
    return [message for check in CHECKS for message in check(root)]


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def self_test():
    """Each rule must find what it is there for, and nothing in a clean tree."""
    planted = {
        "src/base/error.cc": ('#include "models/model.h"\n', "base (layer 0) includes models (layer 8)"),
        "src/numerics/a.cc": ('#include "tensor/shape.h"\n', "numerics (layer 1) includes tensor (layer 1)"),
        "src/base/angle.cc": ("#include <models/model.h>\n", "base (layer 0) includes models (layer 8)"),
        "src/base/comment.inc": ('#include /* up */ "models/model.h"\n', "base (layer 0) includes models (layer 8)"),
        "src/base/digraph.hpp": ('%:include "models/model.h"\n', "base (layer 0) includes models (layer 8)"),
        "src/attic/a.cc": ("\n", "has no layer"),
        "src/ops/long.cc": ("\n" * 1001, "over 1000"),
        "src/ops/linear_utils.h": ("\n", "says nothing"),
        "src/kernels/a.cc": ("if (arch >= 90) return;\n", "outside src/device"),
        "src/kernels/b.cc": ("if (90 <= arch) return;\n", "outside src/device"),
        "src/kernels/c.cc": ("if (info.major >= 9) return;\n", "outside src/device"),
        "src/kernels/d.cc": ("if (sm >= kSm90) return;\n", "outside src/device"),
        "README.md": ("[x](docs/missing.md)\n", "does not exist"),
    }
    for name, (text, expected) in planted.items():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            write(root, "src/layers.txt", "0 base\n1 numerics\n1 tensor\n2 device\n2 ops\n4 kernels\n8 models\n")
            write(root, "src/models/a.cc", '#include "models/model.h"\n#include "base/error.h"\n#include <vector>\n')
            write(root, "src/device/arch.cc", "bool f(int arch) { return arch >= 90; }\n")
            assert violations(root) == [], violations(root)
            write(root, name, text)
            found = violations(root)
            assert len(found) == 1 and expected in found[0], (name, found)
            print(f"planted {name}: {found[0]}")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    found = violations(pathlib.Path(sys.argv[1]))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
