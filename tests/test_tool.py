"""The commands that teach, ask and change a classifier's file."""
