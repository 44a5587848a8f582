"""Every block in IANA's registries of special-purpose addresses, and addresses that embed another address."""

import ipaddress

import pytest

from exhibit.converters.pages.fetch import is_public

# iana-ipv4-special-registry, iana-ipv6-special-registry, multicast and blocks that RFCs deprecate: all are refused
# blocks of the registries that are public: AS112's, and blocks of ordinary networks
PUBLIC = "192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 2620:4f:8000::/48 8.8.8.0/24 2a00:1450::/32 2606:4700::/32"


def list_special_networks() -> list[str]:
    """Return every special block that this Python knows, including blocks that it calls global."""
    blocks = set()
    for table in (ipaddress._IPv4Constants, ipaddress._IPv6Constants):  # type: ignore[attr-defined]
        for name, value in vars(table).items():
            if name.endswith(("_network", "_networks", "_networks_exceptions")):
                blocks.update(map(str, value if isinstance(value, list) else [value]))
    return sorted(blocks)


@pytest.mark.parametrize("block", list_special_networks())
def test_is_public_is_false_for_reserved_networks_of_the_standard_library(block):
    network = ipaddress.ip_network(block)
    for address in (network[0], network[network.num_addresses // 2], network[-1]):
        assert not is_public(str(address)), address


@pytest.mark.parametrize("block", PUBLIC.split())
def test_is_public_is_true_for_internet_addresses(block):
    network = ipaddress.ip_network(block)
    assert all(is_public(str(address)) for address in (network[1], network[-2]))


HIDDEN = ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "168.63.129.16", "0.0.0.0"]


@pytest.mark.parametrize("inner", HIDDEN)
def test_is_public_is_false_for_ipv6_addresses_that_embed_a_private_address(inner):
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
