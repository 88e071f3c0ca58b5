"""Classifiers as files. What is in such a file is told in ``docs/format.md``.

From the outside in: :mod:`~frugalvae.storage.model_file` says what is kept of a classifier,
:mod:`~frugalvae.storage.writer` and :mod:`~frugalvae.storage.reader` how objects become JSON and
tensors and come back, and :mod:`~frugalvae.storage.container` how those become bytes that notice
any damage. :mod:`~frugalvae.storage.classes` lists what a file may speak of.
"""
