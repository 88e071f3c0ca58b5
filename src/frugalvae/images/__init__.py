"""Images: which are in a folder, how they are decoded, and how they become feature files."""

#: Images that an encoder takes at a time. More are no faster on a processor, and take
#: 10 MB each: ``python -m lab.benchmarks.encoding batches``.
BATCH_SIZE = 4
