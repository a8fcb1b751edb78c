"""`python -m fakekubeapi` is the command `fakekubeapi`."""

import sys

from fakekubeapi.cli import main

sys.exit(main())
