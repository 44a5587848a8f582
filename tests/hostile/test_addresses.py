"""Every block in IANA's registries of special-purpose addresses, and addresses that hide another address."""

from __future__ import annotations

import ipaddress

import pytest

from exhibit.converters.fetching.download import is_public

# iana-ipv4-special-registry, iana-ipv6-special-registry, multicast and what the RFCs deprecated: none may be reached
SPECIAL = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.88.99.0/24 192.88.99.2/32
192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 255.255.255.255/32
168.63.129.16/32
::1/128 ::/128 ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32
2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28
2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 4000::/2 8000::/1
""".split()
# blocks of the registries that everybody may reach: AS112's, and those of ordinary networks
PUBLIC = "192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 2620:4f:8000::/48 8.8.8.0/24 2a00:1450::/32 2606:4700::/32"


@pytest.mark.parametrize("block", SPECIAL)
def test_no_address_of_a_special_block_is_public(block):
    network = ipaddress.ip_network(block)
    middle = network[network.num_addresses // 2]
    for address in {network[0], network[-1], middle}:
        # of the whole of 8000::/1 the middle is no less special than its ends
        assert not is_public(str(address)), address
        assert not is_public(f"{address}%eth0")


def known_to_python() -> list[str]:
    """Return every special block that this Python knows, including those that it treats as global."""
    blocks = set()
    for table in (ipaddress._IPv4Constants, ipaddress._IPv6Constants):  # type: ignore[attr-defined]
        for name, value in vars(table).items():
            if name.endswith(("_network", "_networks", "_networks_exceptions")):
                blocks.update(map(str, value if isinstance(value, list) else [value]))
    return sorted(blocks)


@pytest.mark.parametrize("block", known_to_python())
def test_no_block_that_the_standard_library_lists_is_public(block):
    network = ipaddress.ip_network(block)
    for address in (network[0], network[network.num_addresses // 2], network[-1]):
        assert not is_public(str(address)), address


def test_the_standard_library_lists_both_registries():
    blocks = set(known_to_python())
    assert len(blocks) >= 30 and {"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "fc00::/7", "fe80::/10"} <= blocks


@pytest.mark.parametrize("block", PUBLIC.split())
def test_addresses_of_the_open_internet_are_public(block):
    network = ipaddress.ip_network(block)
    assert all(is_public(str(address)) for address in (network[1], network[-2]))


HIDDEN = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "168.63.129.16", "0.0.0.0"]


@pytest.mark.parametrize("inner", HIDDEN)
def test_an_address_that_hides_a_private_one_is_not_public(inner):
    number = int(ipaddress.IPv4Address(inner))
    teredo = (0x20010000 << 96) | (number ^ 0xFFFF_FFFF)
    for form in (
        f"::ffff:{inner}",
        f"::{inner}",
        f"64:ff9b::{inner}",
        f"64:ff9b:1::{inner}",
        str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))),
        str(ipaddress.IPv6Address(teredo)),
    ):
        assert not is_public(form), form


def test_of_the_forms_that_hide_a_public_address_only_that_of_nat64_is_public():
    assert is_public("64:ff9b::8.8.8.8")
    assert not any(map(is_public, ("::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b:1::8.8.8.8", "2002:808:808::1")))
