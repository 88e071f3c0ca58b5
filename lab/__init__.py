"""The laboratory's tests and benchmarks, run from the root of the repository."""
