"""Classifiers as files. What is in such a file is told in ``docs/format.md``.

From the outside in: :mod:`~frugalvae.saving.classifier` says what is kept of a classifier,
:mod:`~frugalvae.saving.writer` and :mod:`~frugalvae.saving.reader` how objects become JSON and
tensors and come back, and :mod:`~frugalvae.saving.container` how those become bytes that notice
any damage. :mod:`~frugalvae.saving.classes` lists what a file may speak of.
"""
