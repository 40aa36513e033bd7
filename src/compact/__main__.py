"""`python -m compact` is the command `compact`."""

import sys

from compact.cli.main import main

sys.exit(main())
