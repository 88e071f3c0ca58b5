"""Mathematics: pure functions and running sums, named as in the paper."""
