"""``python -m services.site_agent`` is ``ballast-site``."""

import sys

from services.site_agent.cli import main

sys.exit(main())
