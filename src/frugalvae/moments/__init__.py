"""The default memory: its sums, the rule that answers, evidence, budget and file form."""
