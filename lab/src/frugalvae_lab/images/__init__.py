"""Data sets of images, as papers use them."""
