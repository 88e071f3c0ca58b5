"""The paper's system: Algorithm 1 in :mod:`~frugalvae.paper.vae_fo`, and all its variants."""
