"""Feature files and streams of tasks."""

#: Images that an encoder takes at a time. More are no faster on a processor, and take
#: 10 MB each: ``python -m benchmarks.encoding batches``.
BATCH_SIZE = 4
