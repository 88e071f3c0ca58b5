"""The command line. A verb is a module here; :mod:`~frugalvae.cli.main` finds it.

Verbs share the options in :mod:`~frugalvae.cli.options`. They work on a classifier's file, which
:mod:`~frugalvae.storage.store` changes without ever losing it. Verbs import what they work with
when they run, so that help and errors come at once.
"""
