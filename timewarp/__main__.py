"""`python -m timewarp`."""

import sys

from timewarp.cli import main

sys.exit(main())
