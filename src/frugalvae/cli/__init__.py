"""The command line. A verb is a module here; :mod:`~frugalvae.cli.main` finds it.

A new verb is one file with ``add_arguments(parser)`` and ``run(options)``, and a line in
``main.VERBS``. :mod:`~frugalvae.cli.options` has the options that verbs share,
:mod:`~frugalvae.cli.common` what verbs do to a classifier's file, which
:mod:`~frugalvae.storage.store` changes without ever losing it, and :mod:`~frugalvae.samples`
makes features of what was named. Verbs import what they work with when they run, so that help and
errors come at once.
"""
