"""Heads of other papers, and classifiers that store everything."""
