"""Serve the bundles and runs of folders on a loopback address, and open the browser.

examples:
    exhibit view                       datasets_out and results in this folder
    exhibit view matter results        other folders
    exhibit view --no-browser --port 8123

Everything stays on this machine: the address contains a random token, and no other page can use the server.
"""

import argparse
import ipaddress
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from exhibit.runtime.command import build_parser, guarded, print_note
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.page import list_languages
from exhibit.viewer.server.guard import Guard, make_token
from exhibit.viewer.server.views import Views

FOLDERS = ("datasets_out", "results")
"""The folders that are shown where none is named."""


def make_application(folders: Sequence[Path], *, token: str, hosts: Sequence[str], language: str = "en") -> Starlette:
    """Return the web application that serves the bundles and runs in these folders to holders of the token."""
    views = Views(folders, token=token, language=language)
    return Starlette(routes=views.routes(), middleware=[Middleware(Guard, token=token, hosts=hosts)])


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Start the server for `exhibit view`, open the browser, and serve until Ctrl-C."""
    options = _make_parser().parse_args(argv)
    folders = options.folders or [Path(name) for name in FOLDERS]
    for folder in folders:
        if not options.folders:
            folder.mkdir(exist_ok=True)
        if not folder.is_dir():
            raise ToolkitError(f"{folder}: no such folder; name one that contains bundles or runs")
    token = options.token or make_token()
    listening = _listen(options.host, options.port, own_token=bool(options.token))
    port = listening.getsockname()[1]
    shown = f"[{options.host}]" if ":" in options.host else options.host
    hosts = [f"{name}:{port}" for name in {shown, "127.0.0.1", "localhost", "[::1]"}]
    address = f"http://{shown}:{port}/{token}/"
    print_note(f"{address}\nCtrl-C stops the server; work that was started from its pages continues")
    if not options.no_browser:
        webbrowser.open(address)
    server = make_application(folders, token=token, hosts=hosts, language=options.language)
    uvicorn.Server(uvicorn.Config(server, log_level="warning", server_header=False)).run(sockets=[listening])
    return 0


def _listen(host: str, port: int, *, own_token: bool) -> socket.socket:
    """Return a listening socket; refuse an address that other machines can reach, unless the user chose a token."""
    try:
        loopback = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError as error:
        raise ToolkitError(f"--host {host}: give an address, such as 127.0.0.1") from error
    if not loopback and not own_token:
        raise ToolkitError(f"--host {host}: other machines can reach that address; choose a long --token as well")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise ToolkitError(f"port {port}: cannot be opened: {error.strerror}; choose another --port") from error


def _make_parser() -> argparse.ArgumentParser:
    parser = build_parser("exhibit view", __doc__)
    default = " and ".join(FOLDERS)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help=f"bundles and runs (default: {default})"
    )
    parser.add_argument("--port", type=int, default=0, help="default: a free port")
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, which only this machine can reach")
    parser.add_argument(
        "--token",
        help=(
            "the token of the address, in place of a random one; required with a --host that other machines can reach"
        ),
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address without opening a browser")
    parser.add_argument("--language", choices=list_languages(), default="en", help="the language of the pages")
    return parser


if __name__ == "__main__":
    sys.exit(main())
