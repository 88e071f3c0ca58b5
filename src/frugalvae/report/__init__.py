"""Tables, pages and plots of what was measured; nothing here learns.

- Results of experiments: :mod:`read_tables` and :mod:`sample_tables` make tables
  (:mod:`results_table`) from a results folder; :mod:`results_report` writes them as Markdown,
  LaTeX and CSV, :mod:`results_page` as HTML with plots (:mod:`pareto` chooses the points).
- One classifier on test samples: :mod:`evaluation` holds predictions and scores,
  :mod:`reliability` compares probabilities with accuracy; :mod:`evaluation_summary`,
  :mod:`evaluation_json` and :mod:`evaluation_page` show them, with :mod:`thumbnails`.
- The demo: :mod:`demo_page`.
- Shared: :mod:`wording` writes numbers, :mod:`render` fills ``templates``, :mod:`plots` draws
  with :mod:`plot_parts`.
"""
