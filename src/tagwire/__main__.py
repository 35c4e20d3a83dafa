"""`python -m tagwire` is the `tagwire` command. It alone loads without what the command needs, to say what that is."""

from __future__ import annotations

import sys

from tagwire.extras import MissingExtraError, Needs


def main() -> int:
    """Run the command that this process was started with; its exit code, see `tagwire.cli.main`."""
    try:
        with Needs("cli"):
            from tagwire.cli import main as run
    except MissingExtraError as error:
        print(f"tagwire: {error}", file=sys.stderr)
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
