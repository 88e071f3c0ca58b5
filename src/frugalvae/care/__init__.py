"""Care: which photographs are bad, and which to label next.

Everything here works on features and labels; photographs are only needed to say whether one is
blurred or tiny, and for thumbnails.
"""
