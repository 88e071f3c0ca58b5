"""``python -m frugalvae`` is the command ``frugalvae``."""

from __future__ import annotations

import sys

from frugalvae.cli.main import main

sys.exit(main())
