"""Tables, pages and plots of what was measured; nothing here learns.

- Results of experiments: :mod:`read_tables` makes tables (:mod:`results_table`) from a results
  folder, and :mod:`results_report` writes them; :mod:`pareto` chooses the points of a frontier.
- One classifier on test samples: :mod:`evaluation` holds predictions and scores,
  :mod:`evaluation_page` shows them.
- The demo: :mod:`demo_page`.
- Shared: :mod:`render` fills ``templates`` and writes numbers, :mod:`plots` draws with
  :mod:`plot_parts`.
"""
