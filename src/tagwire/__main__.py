"""`python -m tagwire` is the `tagwire` command."""

import sys

from tagwire.cli import main

if __name__ == "__main__":
    sys.exit(main())
