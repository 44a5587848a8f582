"""What may be reached: web addresses whose every IP address is public, unless private ones are allowed."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
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
