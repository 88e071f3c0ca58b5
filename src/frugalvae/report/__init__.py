"""Pages and pictures of what happened: no part of it knows how to learn."""
