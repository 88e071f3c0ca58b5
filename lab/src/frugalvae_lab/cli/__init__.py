"""The command ``frugalvae-lab``. A verb is a module; :mod:`~frugalvae_lab.cli.main` finds it."""
