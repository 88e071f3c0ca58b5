"""Verbs: one function each. A model and samples go in, one result comes out, which is its JSON.

The command line, the server and the classes of Python render results, and know nothing else.
What needs no samples is a function of the room that it is about: ``explain`` is
:func:`frugalvae.care.explanations.explain`, ``status`` :func:`frugalvae.storage.summary.summarise`,
``encode`` :func:`frugalvae.encoding.encode_images`, and ``sample`` a method of the model.
"""
