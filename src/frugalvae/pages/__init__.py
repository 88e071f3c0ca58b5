"""Pages about results of verbs; nothing here learns.

:mod:`evaluation` shows an evaluation, :mod:`care` what ``check`` and ``suggest`` found.
:mod:`render` fills ``templates`` and makes thumbnails, :mod:`plots` draws.
"""
