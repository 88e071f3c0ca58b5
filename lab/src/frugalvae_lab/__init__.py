"""The laboratory: rivals of the default memory, experiments that compare them, and their reports.

Memories and heads here are found by their names wherever FrugalVAE takes one, because this
distribution offers them as entry points. FrugalVAE itself never imports anything of it.
"""
