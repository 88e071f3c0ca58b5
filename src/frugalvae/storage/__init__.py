"""Classifiers as files. ``docs/format.md`` describes what is in one.

From the outside in:

- :mod:`~frugalvae.storage.store`: the file of a command: locked, replaced atomically, undone.
- :mod:`~frugalvae.storage.summary`: what a file is, without making its classifier.
- :mod:`~frugalvae.storage.model_file`: a model to a file and back; the one way into a file.
- :mod:`~frugalvae.storage.schema`: what may stand in its document.
- :mod:`~frugalvae.storage.states`: parts as JSON and arrays, and the classes that a file may name.
- :mod:`~frugalvae.storage.tables`: what each of our memories and heads may hold.
- :mod:`~frugalvae.storage.model_file`: JSON and arrays as bytes with a checksum.
"""
