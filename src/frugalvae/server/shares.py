"""Shares: what one client may have of something that all of them need."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from frugalvae.server.refusals import RefusedError

#: Who asks, as :func:`client_of` names it; set for each request by the guard.
CLIENT: ContextVar[str] = ContextVar("CLIENT", default="")
PREFIX = 64  # bits of an IPv6 address that one household or machine has all addresses of


def client_of(address: Any) -> str:
    """Who asks, from the address and port of a connection.

    >>> client_of(("192.0.2.7", 5000)), client_of(("::ffff:192.0.2.7", 5000)), client_of(None)
    ('192.0.2.7', '192.0.2.7', '')
    >>> client_of(("2001:db8::1", 5000)) == client_of(("2001:db8::2", 5000))
    True
    """
    name = str(address[0]) if address else ""
    try:
        found = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:  # a socket without addresses
        return name
    if isinstance(found, ipaddress.IPv4Address):
        return name
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), PREFIX), strict=False))


class Shares:
    """How much of something is taken, by all clients and by each: one may have about half of it.

    Attributes
    ----------
    what
        What it is, in the plural, for refusals.
    most, each
        How much there is, and how much of it one client may have.
    total, of
        How much is taken, and how much by each client.
    """

    def __init__(self, what: str, most: int, each: int) -> None:
        self.what, self.most, self.each = what, most, each
        self.total, self.of = 0, Counter[str]()

    def take(self, client: str, count: int = 1) -> None:
        """Take some for a client; a refusal if that is more than it may have, or than there is."""
        if self.of[client] + count > self.each:
            raise RefusedError(
                429, f"more than {self.each:,} {self.what} from one address; try again soon", 1
            )
        if self.total + count > self.most:
            raise RefusedError(503, f"more than {self.most:,} {self.what}; try again soon", 1)
        self.total += count
        self.of[client] += count

    def give_back(self, client: str, count: int = 1) -> None:
        """Give back what was taken."""
        self.total -= count
        self.of[client] -= count
        if not self.of[client]:
            del self.of[client]  # or whoever came once would be remembered

    @contextmanager
    def taken(self, client: str) -> Iterator[None]:
        """One of it is the client's inside the block."""
        self.take(client)
        try:
            yield
        finally:
            self.give_back(client)


def half(most: int) -> int:
    """What one client may have of a number of places: half of them, and at least one.

    >>> half(128), half(3), half(1)
    (64, 2, 1)
    """
    return most - most // 2
