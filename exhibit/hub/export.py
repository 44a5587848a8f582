"""Exports a bundle to other formats.

examples:
  exhibit export datasets_out/cuad --to squad --out out/cuad-squad
  exhibit export datasets_out/cuad --to legalbenchrag --out out/cuad-lbr
"""

import sys
from pathlib import Path

from exhibit.hub import exports
from exhibit.hub.exports import Export, write_json
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas import __version__
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.storage.atomic import FolderKind, replace_folder
from exhibit.storage.bundle import mirror_bundle, open_bundle
from exhibit.storage.locations import Location, parse_location

RECORD = "export.json"
"""The file that lists the items that an export left out; --force replaces only a folder with this file."""

KIND = FolderKind("an export", lambda folder: (folder / RECORD).is_file())


def format_names() -> list[str]:
    return list_plugins(exports.__name__)


def export(root: Location, name: str, out: Path, *, force: bool = False) -> Export:
    """Write a bundle in the named format; `out` appears complete or not at all."""
    if name not in format_names():
        raise ToolkitError(f"no format {name!r}; there are {', '.join(format_names())}")
    form = load_plugin(exports.__name__, name)[0]
    source = Export(open_bundle(mirror_bundle(root)))
    with replace_folder(out, force=force, kind=KIND) as folder:
        try:
            form.write(source, folder)
        except UnicodeEncodeError as error:
            raise BundleError(
                f"{root}: a text or a name contains a broken character (a lone surrogate), which no file "
                "can store; repair the source"
            ) from error
        record = {
            "format": name,
            "bundle": source.name,
            "tool": f"exhibit-rag {__version__}",
            "left_out": source.left_out,
            "noted": source.noted,
        }
        write_json(folder / RECORD, record)
    return source


@guarded("stopped; nothing was written")
def main(argv: list[str] | None = None) -> int:
    parser = build_parser("exhibit export", __doc__)
    parser.add_argument("bundle", type=parse_location, metavar="DIR", help="a bundle's folder or URL")
    parser.add_argument("--to", choices=format_names(), required=True, help="the format")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument("--force", action="store_true", help="replace an earlier export")
    add_json(parser)
    options = parser.parse_args(argv)
    done = export(options.bundle, options.to, options.out, force=options.force)
    lines = [
        f"{done.name} as {options.to} -> {options.out}: {', '.join(sorted(p.name for p in options.out.iterdir()))}"
    ]
    for label, reasons in (("left out", done.left_out), ("noted", done.noted)):
        lines += [f"  {label}: {reason}: {len(cases)}" for reason, cases in reasons.items()]
    record = {"bundle": done.name, "format": options.to, "out": str(options.out), "left_out": done.left_out}
    print_results({**record, "noted": done.noted}, "\n".join(lines), as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
