"""`python -m kubelet_conformance` is the command `kubelet-conformance`."""

import sys

from kubelet_conformance.cli import main

sys.exit(main())
