"""`python -m graphmem`, the same as `gmem`."""

import sys

from graphmem.cli import main

sys.exit(main())
