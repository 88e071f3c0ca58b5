"""Memories that the default replaced, and those of other papers."""
