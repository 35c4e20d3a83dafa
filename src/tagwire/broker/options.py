"""From what a program says of a broker to its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from tagwire.broker.network.listener import Listener, Tls
from tagwire.broker.settings import Options, Settings
from tagwire.errors import ConfigError, no_such_option
from tagwire.rpc.addresses import address_of

OPTIONS: Final = frozenset(
    {*Options.__annotations__, "data_dir", "port", "host", "advertise", "tls", "sasl", "listeners"}
)


def settings_of(
    data_dir: str | PathLike[str] | None,
    port: int,
    host: str,
    advertise: str | None,
    tls: Tls | None,
    sasl: str | Iterable[str],
    listeners: Listener | Iterable[Listener],
    options: Options,
    known: frozenset[str] = OPTIONS,
) -> Settings:
    """The settings that the arguments of `Broker` mean; `known`: all options that there are.

    Raises:
        ConfigError: an option is wrong; the text says which, and what is allowed.
    """
    for name in options:
        if name not in known:
            raise no_such_option(name, known)
    if data_dir is not None and not isinstance(data_dir, (str, PathLike)):
        raise ConfigError(f"data_dir={data_dir!r} is no directory: a port is given as port=9092")
    if advertise is not None and not isinstance(advertise, str):
        raise ConfigError(f'advertise={advertise!r} is no text, such as "broker.example:9092"')
    # A dict of users among the mechanisms is named as what it is.
    several_mechanisms = isinstance(sasl, Iterable) and not isinstance(sasl, (str, Mapping))
    mechanisms: tuple[Any, ...] = tuple(sasl) if several_mechanisms else (sasl,)
    one = Listener(
        host,
        port,
        address_of(advertise, "advertise") if advertise is not None else None,
        tls,
        mechanisms,
    )
    several = tuple(listeners) if isinstance(listeners, Iterable) else (listeners,)
    if not all(isinstance(each, Listener) for each in several):
        raise ConfigError('listeners: needs a list of Listener("0.0.0.0", 9092)')
    if several and one != Listener():
        raise ConfigError("listeners: says all of host, port, advertise, tls and sasl: give one or the other")
    return Settings(data_dir=None if data_dir is None else Path(data_dir), listeners=several or (one,), **options)
