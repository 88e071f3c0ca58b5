"""Feature files and streams of tasks."""
