"""The server: ask, teach and correct a classifier's file over HTTP, and on a page.

:mod:`~frugalvae.server.app` puts it together. A request passes :mod:`~frugalvae.server.guard`, is
read by :mod:`~frugalvae.server.requests` and answered by :mod:`~frugalvae.server.predict`,
:mod:`~frugalvae.server.pending`, :mod:`~frugalvae.server.teach` or :mod:`~frugalvae.server.status`,
from the file that :mod:`~frugalvae.server.served` keeps. :mod:`~frugalvae.server.models` says what
is sent and answered. Changes are verbs, as on the command line, under the same lock.
"""
