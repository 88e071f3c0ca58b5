"""``frugalvae-lab report``: write tables and figures of measured experiments."""

from __future__ import annotations

import argparse
from pathlib import Path

from frugalvae.cli.options import add


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Write what 'bench run' measured: tables beside those of the paper, figures, and every "
        "run. The report says what is missing or failed."
    )
    parser.add_argument("results", type=Path, metavar="RESULTS", help="the folder of 'bench run'")
    about = "the report to write: .html, .md or .csv (default: report.html)"
    add(parser, "--output", default=Path("report.html"), help=about)
    parser.add_argument(
        "--table",
        metavar="NAME",
        help="write this table alone (default: all but races, which are pages of their own)",
    )
    parser.add_argument(
        "--format",
        choices=("html", "md", "csv"),
        help="the format, where the ending of the file does not tell it",
    )


def run(options: argparse.Namespace) -> None:
    """Write the report."""
    from frugalvae_lab.report.results_report import write_report

    print(write_report(options.results, options.output, options.format, options.table))
