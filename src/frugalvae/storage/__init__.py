"""Classifiers as files. ``docs/format.md`` describes what is in one.

From the outside in:

- :mod:`~frugalvae.storage.store`: the file of a command: locked, replaced atomically, undone.
- :mod:`~frugalvae.storage.model_file`: a model to a file and back; the one way into a file.
- :mod:`~frugalvae.storage.model_checks`: what a model must show when it is loaded, and written.
- :mod:`~frugalvae.storage.tables`: what each of our memories and heads may hold.
- :mod:`~frugalvae.storage.document`: what a file must say of a model, in this format and older.
- :mod:`~frugalvae.storage.objects`: objects as JSON and arrays, and back.
- :mod:`~frugalvae.storage.parts`: what is kept of a part, and the classes that a file may name.
- :mod:`~frugalvae.storage.container`: JSON and arrays as bytes with a checksum.
"""
