"""Measures the size of an installation on disk: `python -m bench.install [EXTRA …]`.

It adds up the files of every distribution that the project and the named extras require, directly or
indirectly, as they are installed in this environment. Compiled Python files and pip are not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from exhibit.doctor import read_requirements
from exhibit.runtime.command import Parser, guarded
from exhibit.schemas.errors import ToolkitError

LARGEST = 8  # packages in the list


def find_closure(wanted: Iterable[Requirement]) -> dict[str, metadata.Distribution]:
    """Return the distributions that some requirements need, directly or indirectly, by name.

    Raise ToolkitError if a distribution is not installed.
    """
    found: dict[str, metadata.Distribution] = {}
    left = [(one, extra) for one in wanted for extra in ("", *one.extras)]
    while left:
        requirement, extra = left.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            distribution = found.setdefault(name, metadata.distribution(name))
        except metadata.PackageNotFoundError as error:
            raise ToolkitError(
                f"{name} is not installed here; run this in an environment with all requirements"
            ) from error
        inner = [Requirement(line) for line in distribution.requires or ()]
        for one in inner:
            for asked in ("", *requirement.extras):
                needed = one.marker is None or one.marker.evaluate({"extra": asked})
                if needed and canonicalize_name(one.name) not in found:
                    left.append((one, asked))
    return found


def size_of(distribution: metadata.Distribution) -> int:
    """Return the total size of a distribution's files in bytes, without the files in `__pycache__`."""
    files = [file for file in distribution.files or () if "__pycache__" not in file.parts]
    paths = [Path(str(distribution.locate_file(file))) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file())


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Print the total size of the required packages in megabytes, and the size of the largest ones."""
    parser = Parser(prog="python -m bench.install", description=__doc__)
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="print, notebook, ocr …")
    extras = parser.parse_args(argv).extras
    asked = read_requirements()
    wanted = [one for name in ("", *extras) for one in asked[name]]
    sizes = {name: size_of(distribution) for name, distribution in find_closure(wanted).items()}
    name = f"exhibit-rag[{','.join(extras)}]" if extras else "exhibit-rag"
    print(f"{sum(sizes.values()) / 1e6:.0f} MB in {len(sizes)} packages: what {name} requires")
    for package in sorted(sizes, key=lambda one: -sizes[one])[:LARGEST]:
        print(f"  {sizes[package] / 1e6:6.1f}  {package}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
