"""Usage: check_isa.py libsinter_core.a

Files that are compiled for AVX2 or AVX-512 share inline functions with the rest of the program; the linker
keeps any one copy. A weak symbol with such instructions would crash other machines: there must be none.
"""
import re
import subprocess
import sys
import tempfile
import pathlib


def main():
    archive = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["ar", "x", archive], cwd=folder, check=True)
        objects = sorted(pathlib.Path(folder).glob("*_avx*.o"))
        if not objects:
            sys.exit("no object of a vector kernel in the archive: does this test look at the right names?")
        bad = []
        for path in objects:
            weak = {line.split()[-1] for line in
                    subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
                    if re.search(r" [WVu] ", line)}
            listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True,
                                     check=True).stdout
            function = None
            for line in listing.splitlines():
                match = re.match(r"[0-9a-f]+ <(.+)>:", line)
                if match:
                    function = match.group(1)
                elif function in weak and re.search(r"\bv[a-z0-9]+\b.*[xyz]mm", line):
                    bad.append(f"{path.name}: {function}: {line.strip()}")
                    weak.discard(function)
        print("\n".join(bad) if bad else f"{len(objects)} objects, no vector code in shared inline functions")
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
