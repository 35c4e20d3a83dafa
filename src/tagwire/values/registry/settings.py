"""How a schema registry is reached, checked and hashable: two that are equal share one client in a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class RegistrySettings:
    """Where a registry is and how it is talked to. Secrets are in no repr. Times in seconds, sizes in bytes.

    Attributes:
        urls: base URLs of one registry's nodes, without credentials; each request tries them in turn.
        user, password: HTTP's basic authentication; `token` is a bearer's. None for neither.
        cluster, identity_pool: what Confluent Cloud wants to know beside a bearer's token.
        ca_file, ca_text: certificates that are trusted, as a PEM file (or a directory of them) or as text; None is
            the machine's own.
        certificate_file, key_file, key_password: the client's own certificate, as PEM files.
        proxy: the URL of what requests go through; it may have credentials.
        verify: whether the registry's certificate is checked at all, and `check_hostname` whether for its name, too.
        connect_timeout: for one connection; `read_timeout` for the silence of one; `timeout` for a whole request, its
            retries and redirects included.
        retries: rounds over all `urls` after the first; `backoff` before the second, doubled from round to round up to
            `backoff_max`, which bounds what a Retry-After may ask, too.
        max_response: the largest response that is taken.
        cache_entries: schemas that a process keeps; `unknown_ttl` is how long it takes a registry's word that it has
            none of an id, or not what that refers to.
    """

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    cluster: str | None = None
    identity_pool: str | None = None
    ca_file: str | None = None
    ca_text: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)
    verify: bool = True
    check_hostname: bool = True
    connect_timeout: float = 10.0
    read_timeout: float = 30.0
    timeout: float = 60.0
    retries: int = 3
    backoff: float = 0.5
    backoff_max: float = 10.0
    max_response: int = 10 * MIB
    cache_entries: int = 1000
    unknown_ttl: float = 30.0
