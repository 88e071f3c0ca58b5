"""The server: ask, teach and correct a classifier's file over HTTP, and on a page.

:mod:`~frugalvae.server.app` puts it together. A request passes :mod:`~frugalvae.server.guard`, is
read by :mod:`~frugalvae.server.reading`, and answered by :mod:`~frugalvae.server.asking`,
:mod:`~frugalvae.server.advising`, :mod:`~frugalvae.server.teaching` or
:mod:`~frugalvae.server.telling`, from the file that :mod:`~frugalvae.server.served` keeps. What
requests share is in :mod:`~frugalvae.server.state`. Learning goes through the same lock, the same
model and the same file operations as the command line.
"""
