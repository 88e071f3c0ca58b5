"""The paper's memory, one conditional VAE, and its variants."""
