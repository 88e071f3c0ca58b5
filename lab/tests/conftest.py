"""The fixtures of the product's tests, for these as well."""

from __future__ import annotations

from tests.conftest import clip_folder, encoders, features, rng, taught, tool

__all__ = ["clip_folder", "encoders", "features", "rng", "taught", "tool"]
