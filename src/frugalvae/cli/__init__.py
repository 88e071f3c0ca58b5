"""The command line. A verb is a module here; :mod:`~frugalvae.cli.main` finds it.

A new verb is a function in :mod:`frugalvae.verbs`, which does it; one file here with
``add_arguments(parser)`` and ``run(options)``, whose docstring is its help and which prints the
result; and a line in ``main.VERBS``. :mod:`~frugalvae.cli.options` has the options that verbs
share, and :mod:`~frugalvae.samples` makes features of what was named. Verbs import what they work
with when they run, so that help and errors come at once.
"""
