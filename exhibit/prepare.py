"""Install the parts that no package contains: a Chromium for printing, and the weights of the embedder.

examples:
    exhibit prepare            both
    exhibit prepare browser    or: model

Parts that are already present are not downloaded again.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from exhibit.runtime.command import build_parser, guarded

PARTS: dict[str, Callable[[], int]] = {
    "browser": lambda: import_module("exhibit.converters.printing.browser").main(),
    "model": lambda: import_module("exhibit.models.embedders.legal").main(["--prepare"]),
}


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Install the parts named on the command line, `browser` or `model`; without names, install both.

    Return the exit code of the first part that fails, or 0.
    """
    parser = build_parser("exhibit prepare", __doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS], help=" or ".join(PARTS))
    chosen = parser.parse_args(argv).parts or list(PARTS)
    return next((code for part in chosen if (code := PARTS[part]())), 0)
