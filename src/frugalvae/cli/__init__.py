"""A classifier as a file that the command line teaches, asks and changes.

A verb is a module: ``add_VERB`` says what may be typed, ``run_VERB`` does it. Beneath them,
:mod:`~frugalvae.storage.store` changes the file without ever losing it,
:mod:`~frugalvae.images.listing` finds the images of classes, and
:mod:`~frugalvae.encoders.remembered` makes their features with the encoder that the file remembers.
"""
