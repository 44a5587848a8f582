"""What may be reached, and a proxy that all traffic passes, the browser's too: it connects only to checked addresses.

A check of host names in front of a browser is not enough: redirects, frames and scripts ask for other hosts, and a
name may resolve to something else a moment later. Here the address that was checked is the one that is used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable
from types import TracebackType
from typing import Literal
from urllib.parse import urlsplit

import httpx

Fate = Literal["refused", "disallowed", "unusable", "failed"]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
"""All of IPv6 that is given out; the registry's other blocks lie outside of it, whatever Python knows of them."""
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        # clouds' own services behind addresses that Python calls global, and the special blocks that it does not know
        ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20"),
    )
)


class FetchError(Exception):
    """A URL gave no page: its fate, why in a few words, and the particulars."""

    def __init__(self, fate: Fate, reason: str, detail: str = "", *, url: str = "", status: int | None = None) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.fate = fate
        self.reason = reason
        self.detail = detail
        self.url = url
        self.status = status


def flaw_of(url: str) -> str | None:
    """Return why a string is no address of a page, or None."""
    try:
        parsed = httpx.URL(url)
        urlsplit(url).port  # noqa: B018  # the names are read with it, and it is stricter about some hosts
    except (httpx.InvalidURL, ValueError):
        return "not a web address"
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        return "not a web address"
    if parsed.userinfo:
        return "a user name or password in the address"
    return None


def is_public(address: str) -> bool:
    """Tell whether an IP address belongs to the open internet; one that hides another is public for NAT64 alone."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip in _NAT64:  # what a public host has in a network without IPv4
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _SPECIAL)


class Addresses:
    """Looks hosts up once: what was checked is what is connected to, however often a name changes its mind."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._known: dict[tuple[str, int], list[str]] = {}

    async def resolve(self, host: str, port: int) -> list[str]:
        """Return the host's IP addresses; one that may not be reached refuses the host."""
        host = host.strip("[]")
        key = (host.lower(), port)
        if key not in self._known:
            self._known[key] = await self._look_up(host, port)
        return self._known[key]

    async def _look_up(self, host: str, port: int) -> list[str]:
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise FetchError("failed", "host not found", host) from error
        addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
        if not self._allow_private:
            for address in addresses:
                if not is_public(address):
                    raise FetchError(
                        "refused",
                        "a private or local address (--allow-private)",
                        address if address == host else f"{host} is {address}",
                    )
        return addresses


MARK = "X-Exhibit-Gate"
"""The header of a reply that comes from the gate and not from a server."""
_HEAD = 64 << 10  # bytes of headers: servers send a tenth of it
_CONNECT_SECONDS = 20.0  # what takes longer is not there
_HOP_HEADERS = (b"connection:", b"proxy-connection:", b"keep-alive:", b"proxy-authorization:")


class Gate:
    """The running proxy; `url` is what clients are told to use."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Gate:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for talk in list(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._talks.add(task)
            task.add_done_callback(self._talks.discard)
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # one side went away or does not speak HTTP; the client sees a closed connection
        except asyncio.CancelledError:
            pass  # the gate closes; a cancelled server task would only be logged
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, version = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        tunnel = method == "CONNECT"
        place = urlsplit(f"//{target}" if tunnel else target)
        if not place.hostname or (not tunnel and place.scheme != "http"):
            raise ValueError("not a proxy request")
        try:
            up_reader, up_writer = await self._connect(place.hostname, place.port or (443 if tunnel else 80))
        except FetchError as error:
            await _decline(writer, 403, str(error))
            return
        except (OSError, TimeoutError) as error:
            await _decline(writer, 502, str(error) or "timed out")
            return
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await _first(_pipe(reader, up_writer), _pipe(up_reader, writer))
            else:
                path = target.split("/", 3)[3] if target.count("/") >= 3 else ""
                up_writer.write(_rewritten(head, f"{method} /{path} {version}"))
                await _first(_body(head, reader, up_writer), _answer(up_reader, writer))
        finally:
            up_writer.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        problem: Exception = OSError("no address")
        for address in await self._addresses.resolve(host, port):
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(address, port, limit=_HEAD)
            except (OSError, TimeoutError) as error:
                problem = error
        raise problem


def _rewritten(head: bytes, first: str) -> bytes:
    """Return a head with its first line replaced, for one exchange only: the next may be for another host."""
    lines = head[:-4].split(b"\r\n")[1:]
    kept = [line for line in lines if not line.lower().startswith(_HOP_HEADERS)]
    return b"\r\n".join([first.encode("latin-1"), *kept, b"Connection: close", b"", b""])


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    while head.split(b" ", 2)[1].startswith(b"1"):  # 100 Continue, 103 Early Hints: the real one follows
        head = await reader.readuntil(b"\r\n\r\n")
    writer.write(_rewritten(head, head.split(b"\r\n", 1)[0].decode("latin-1")))
    await _pipe(reader, writer)


async def _body(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a request's body and no more; then wait for the client to leave."""
    left = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"transfer-encoding:"):
            raise ValueError("chunked requests are not passed on")
        if line.startswith(b"content-length:"):
            left = int(line.partition(b":")[2])
    while left > 0 and (block := await reader.read(min(left, 1 << 16))):
        left -= len(block)
        writer.write(block)
        await writer.drain()
    await reader.read(1)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while block := await reader.read(1 << 16):
        writer.write(block)
        await writer.drain()


async def _first(*ways: Awaitable[None]) -> None:
    """Wait until one direction ends, then stop the other."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _decline(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    words = " ".join(reason.split()).encode("ascii", "replace").decode("ascii")
    lines = f"HTTP/1.1 {status} Gate\r\n{MARK}: {words}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    writer.write(lines.encode("latin-1"))
    await writer.drain()
