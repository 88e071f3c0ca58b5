"""Measurements: speed, and the tables of README and docs."""
