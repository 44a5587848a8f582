"""What an installation takes on disk: `python -m bench.install [EXTRA …]`; needs the package index.

The project's requirements, and each extra that is named, are installed into an empty folder, and its files are counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from exhibit.schemas.command import Parser, guarded

ROOT = Path(__file__).parent.parent
LARGEST = 8  # packages that are listed


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Install, count, and print megabytes by package."""
    parser = Parser(prog="python -m bench.install", description=__doc__)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="print, notebook, ocr …")
    extras = parser.parse_args(argv).extras
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, "--target", folder, *wanted], check=True)
        sizes: Counter[str] = Counter()
        for path in Path(folder).rglob("*"):
            if path.is_file():
                sizes[path.relative_to(folder).parts[0]] += path.stat().st_size
    megabytes = sum(sizes.values()) / 1e6
    name = f"exhibit-rag[{','.join(extras)}]" if extras else "exhibit-rag"
    print(f"{megabytes:.0f} MB: the requirements of {name}, not compiled")
    for name, size in sizes.most_common(LARGEST):
        print(f"  {size / 1e6:6.1f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
