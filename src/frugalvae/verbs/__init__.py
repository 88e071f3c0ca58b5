"""Verbs: one function each. A model and samples go in, one result comes out, which is its JSON.

The command line, the server and the classes of Python render results, and know nothing else.
"""
