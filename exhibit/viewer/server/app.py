"""Serves the bundles and runs of folders on a loopback address, and opens the browser.

examples:
    exhibit view                       datasets_out and results in this folder
    exhibit view matter results        other folders
    exhibit view --no-browser --port 8123

Everything stays on this machine: the address contains a random token, and no other page can use the server.
"""

import secrets
import socket
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from exhibit.runtime.command import build_parser, guarded, print_note
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer.server.views import EXPECTED, Views, refuse

FOLDERS = ("datasets_out", "results")  # the folders that are shown by default
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",  # keep the token, which is in the address, out of requests to other sites
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}  # the headers of every response


class Guard(BaseHTTPMiddleware):
    """Middleware that refuses a request without the token in its path, and a request from another site's page.

    The check of the Origin header stops forms on other sites; the check of the Host header prevents DNS rebinding.
    """

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        super().__init__(app)
        self._token = token

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        request.scope["root_path"] = f"/{self._token}"
        response = self._refuse(request) or await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refuse(self, request: Request) -> Response | None:
        headers, path = request.headers, request.scope["path"]
        token = path.split("/")[1] if path.startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("open the address that `exhibit view` printed\n", 404)
        if request.method not in ("GET", "HEAD") and headers.get("origin") != f"http://{headers.get('host')}":
            return PlainTextResponse("only a page of this server may change data\n", 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("a page of another site sent this request\n", 403)
        return None


def make_application(folders: Sequence[Path], *, token: str) -> Starlette:
    """Return the web application that serves the bundles and runs in these folders; every request needs the token."""
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False)
    guards = [hosts, Middleware(Guard, token=token)]
    handlers: dict[Any, Any] = dict.fromkeys(EXPECTED, refuse)
    return Starlette(routes=Views(folders, token=token).make_routes(), middleware=guards, exception_handlers=handlers)


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    parser = build_parser("exhibit view", __doc__)
    add = parser.add_argument
    add("folders", nargs="*", type=Path, metavar="FOLDER", help=f"bundles and runs (default: {' and '.join(FOLDERS)})")
    add("--port", type=int, default=0, help="default: a free port")
    add("--token", help="the secret part of the address (default: a random one)")
    add("--no-browser", action="store_true", help="print the address without opening a browser")
    options = parser.parse_args(argv)
    folders = options.folders or [Path(name) for name in FOLDERS]
    for folder in folders:
        if not options.folders:
            folder.mkdir(exist_ok=True)
        if not folder.is_dir():
            raise ToolkitError(f"{folder}: no such folder; name one that contains bundles or runs")
    try:
        listening = socket.create_server(("127.0.0.1", options.port))
    except (OSError, OverflowError) as error:
        raise ToolkitError(f"port {options.port}: cannot be opened: {error}; choose another --port") from error
    token = options.token or secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/"
    print_note(f"{address}\nCtrl-C stops the server; work started from its pages continues")
    if not options.no_browser:
        webbrowser.open(address)
    application = make_application(folders, token=token)
    uvicorn.Server(uvicorn.Config(application, log_level="warning", server_header=False)).run(sockets=[listening])
    return 0
