"""Care: which samples are bad, which to label next, and what an answer rests on."""
