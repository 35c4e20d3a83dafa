"""`tagwire features`: what a cluster has switched on, and up to which level; in the words of kafka-features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from tagwire.cli import completing
from tagwire.cli.connecting import BOOTSTRAP, administer
from tagwire.cli.options import Bootstrap, DryRun, Json, check_alone, pairs
from tagwire.cli.terminal import print_json, print_rows, printable
from tagwire.errors import UNREACHABLE

app = typer.Typer(name="features", rich_markup_mode=None)

Levels = Annotated[
    list[str],
    typer.Argument(metavar="FEATURE=LEVEL...", show_default=False, autocompletion=completing.features),
]


@app.callback(invoke_without_command=True)
def features(context: typer.Context, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List the features of a cluster, and take them to other levels.

    \b
    Examples:
      tagwire features
      tagwire features upgrade group.version=1 --dry-run
    """
    check_alone(context, as_json)
    if context.invoked_subcommand is None:
        _list(bootstrap, as_json)


@app.command("list")
def list_(bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """List features: the level that the whole cluster has, and those that all its brokers support.

    \b
    Example:
      tagwire features list --json | jq 'select(.level < .highest) | .feature'
    """
    _list(bootstrap, as_json)


@app.command()
def upgrade(levels: Levels, dry_run: DryRun = False, bootstrap: Bootstrap = BOOTSTRAP, as_json: Json = False) -> None:
    """Take features to a higher level, for the whole cluster.

    \b
    Example:
      tagwire features upgrade group.version=1 share.version=1
    """
    _update(levels, "upgrade", dry_run, bootstrap, as_json)


@app.command()
def downgrade(
    levels: Levels,
    unsafe: Annotated[bool, typer.Option("--unsafe", help="Even where metadata is lost by it.")] = False,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = BOOTSTRAP,
    as_json: Json = False,
) -> None:
    """Take features to a lower level; 0 switches one off.

    \b
    Example:
      tagwire features downgrade share.version=0 --dry-run
    """
    _update(levels, "unsafe_downgrade" if unsafe else "safe_downgrade", dry_run, bootstrap, as_json)


def _update(levels: Sequence[str], upgrade_type: str, dry_run: bool, bootstrap: str, as_json: bool) -> None:
    from tagwire.client import FeatureUpdate

    given = [(name, _level(name, text)) for name, text in pairs(levels, "FEATURE=LEVEL")]
    wanted = dict(given)
    if len(wanted) < len(given):
        raise typer.BadParameter("a feature is named twice")
    updates = {name: FeatureUpdate(level, upgrade_type) for name, level in wanted.items()}
    with administer(bootstrap) as admin:
        admin.update_features(updates, validate_only=dry_run)
    if as_json:
        print_json({"feature": name, "level": level, "updated": not dry_run} for name, level in wanted.items())
        return
    for name, level in wanted.items():
        said = "off" if level == 0 else f"at level {level}"
        print(printable(f"{name} {'could be' if dry_run else 'is'} {said} now"))


def _level(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise typer.BadParameter(f"{name}={text!r}: a level is a whole number, such as 1")
    return int(text)


def _list(bootstrap: str, as_json: bool) -> None:
    with administer(bootstrap) as admin:
        told, failed = [], []
        for node in sorted(admin.describe_cluster().brokers):
            try:
                told.append(admin.describe_features(node))
            except UNREACHABLE as error:  # what the others support is worth knowing
                failed.append(error)
    if not told:
        raise failed[0]
    for failure in failed:
        typer.echo(f"not counted: {failure}", err=True)
    newest = max(told, key=lambda one: one.epoch)
    rows = []
    for name in sorted({*newest.finalized, *(name for one in told for name in one.supported)}):
        ranges = [one.supported[name] for one in told if name in one.supported]
        everywhere = len(ranges) == len(told)
        row = {
            "feature": name,
            "level": newest.finalized.get(name, 0),
            "lowest": max(lowest for lowest, _ in ranges) if everywhere else None,
            "highest": min(highest for _, highest in ranges) if everywhere else None,
        }
        rows.append(row)
    if as_json:
        print_json({**row, "epoch": newest.epoch} for row in rows)
    elif rows:
        table = [["-" if cell is None else str(cell) for cell in row.values()] for row in rows]
        print_rows(("feature", "level", "lowest", "highest"), table, numbers=(1, 2, 3))
    else:
        print(f"no features on {printable(bootstrap)}")
