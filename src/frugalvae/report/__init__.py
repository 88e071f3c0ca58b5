"""Pages about classifiers and photographs; nothing here learns.

:mod:`evaluation` has the predictions of one classifier for test samples and their scores, which
:mod:`evaluation_page` shows; :mod:`care_pages` shows what ``check`` and ``suggest`` found. Shared:
:mod:`render` fills ``templates``, :mod:`plots` draws.
"""
