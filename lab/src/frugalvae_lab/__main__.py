"""``python -m frugalvae_lab``."""

from __future__ import annotations

from frugalvae_lab.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
