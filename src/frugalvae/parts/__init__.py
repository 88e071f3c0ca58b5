"""Memories, heads and encoders: what each of them is, how it is found, and what it costs."""
