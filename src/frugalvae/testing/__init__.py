"""The contract of memories, heads and encoders, as checks for parts of your own.

``check_memory(MyMemory)``, ``check_head(MyHead)`` and ``check_encoder(MyEncoder)`` raise one
error that names every rule that is broken. They take a class, or any function without
arguments that makes a part: ``check_memory(lambda: MyMemory(size=3))``. Our own parts pass
the same checks, in ``tests/contract``.
"""

from frugalvae.testing.encoders import check_encoder
from frugalvae.testing.heads import check_head
from frugalvae.testing.memories import check_memory
from frugalvae.testing.rules import ContractError

__all__ = ["ContractError", "check_encoder", "check_head", "check_memory"]
