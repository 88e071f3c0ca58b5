"""Classifiers as files. ``docs/format.md`` describes what is in one.

From the outside in:

- :mod:`~frugalvae.storage.store`: the file of a command: locked, replaced atomically, undone.
- :mod:`~frugalvae.storage.model_file`: a model to a file and back; the one way into a file.
- :mod:`~frugalvae.storage.schema`: what the document of a file must say.
- :mod:`~frugalvae.storage.verify`: a model that was made of a file must be able to answer.
- :mod:`~frugalvae.storage.writer`, :mod:`~frugalvae.storage.reader`: objects as JSON and arrays.
- :mod:`~frugalvae.storage.state`: what is kept of a part, and how it is made of it again.
- :mod:`~frugalvae.storage.classes`: the classes that a file may name.
- :mod:`~frugalvae.storage.migrations`: documents of older formats.
- :mod:`~frugalvae.storage.container`: JSON and arrays as bytes with a checksum.
"""
