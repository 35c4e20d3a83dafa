"""`tagwire doctor`: what tagwire stands on here, and what to do where it does not hold."""

from __future__ import annotations

from typing import Annotated

import typer

from tagwire.cli.connecting import client_properties, given_bootstrap
from tagwire.cli.options import Json, addresses


def doctor(
    brokers: Annotated[
        str | None,
        typer.Argument(
            metavar="[HOST:PORT[,HOST:PORT]]", envvar="TAGWIRE_BOOTSTRAP", callback=addresses, show_default=False
        ),
    ] = None,
    with_spark: Annotated[
        bool, typer.Option("--spark", help="Start Spark and read a record with it, too; takes as long as Spark does.")
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="For one request to a broker.")
    ] = 5.0,
    as_json: Json = False,
) -> None:
    """Look at what tagwire stands on, and say what to do.

    Python, kernels, packages, room on the disk; Java, PySpark, the workers' Python and whether Spark would find the
    formats; and of brokers, if any are named: name, connection, TLS, SASL, versions, advertised addresses, clock.
    Nothing is changed anywhere, and no secret is shown. A line is ok, warning or problem; the exit code is 1 where
    there is a problem. Where this command itself cannot run: python -m tagwire.doctor.

    \b
    Examples:
      tagwire doctor
      tagwire doctor kafka-1:9092 --spark
      tagwire --properties client.properties doctor kafka-1:9093 --json | jq 'select(.state == "problem")'
    """
    from tagwire.doctor import examine
    from tagwire.doctor.report import print_findings

    bootstrap = brokers or given_bootstrap()
    properties = None if bootstrap is None else client_properties(bootstrap)
    raise typer.Exit(print_findings(examine(properties, timeout=timeout, with_spark=with_spark), as_json=as_json))
