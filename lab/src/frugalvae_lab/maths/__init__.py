"""Mathematics that several rivals need."""
