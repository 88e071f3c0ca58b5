"""Tables, pages and plots of experiments; nothing here learns.

:mod:`read_tables` makes tables (:mod:`results_table`) from a results folder, and
:mod:`results_report` writes them; :mod:`pareto` chooses the points of a frontier, and
:mod:`race` scores a race. :mod:`demo_page` is the page of the demo.
"""
