"""How numbers are printed, the same in every format."""

from __future__ import annotations

from frugalvae.report.table import SCIENTIFIC, Entry, Table

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def value(number: float, metric: str) -> str:
    r"""A number of a table: percent to one decimal; a proportion as short as it can be.

    >>> value(66.5123, "final_average_accuracy"), value(0.000123, "proportion")
    ('66.5', '1.2e-04')
    >>> value(0.5162, "proportion"), value(0.0027, "proportion")
    ('0.516', '0.0027')
    >>> value(0.0, "proportion"), value(-17.2, "forgetting") == "\N{MINUS SIGN}17.2"
    ('0', True)
    """
    text = _proportion(number) if metric in SCIENTIFIC else f"{number:.1f}"
    return "0.0" if text == "-0.0" else text.replace("-", MINUS, 1) if number < 0 else text


def _proportion(number: float) -> str:
    if abs(number) >= 0.01 or not number:
        return f"{number:.3f}" if number else "0"
    return f"{number:.4f}" if abs(number) >= 0.001 else f"{number:.1e}"


def with_spread(mean: float, std: float | None, metric: str) -> str:
    """Mean and standard deviation; a single value has none.

    >>> with_spread(66.512, 0.31, "forgetting"), with_spread(66.512, None, "forgetting")
    ('66.5 ± 0.3', '66.5')
    """
    return value(mean, metric) + (f" ± {value(std, metric)}" if std is not None else "")


def signed(difference: float, metric: str) -> str:
    """Ours minus the paper's.

    >>> signed(0.5, "forgetting"), signed(-0.01, "forgetting")
    ('+0.5', '0.0')
    """
    text = value(difference, metric)
    return text if text.startswith(MINUS) or text in ("0.0", "0") else f"+{text}"


def millions(count: float | None) -> str:
    """A count in millions; a dash for none.

    >>> millions(2_960_000), millions(1280)
    ('2.96', '0.001')
    """
    if count is None:
        return DASH
    return f"{count / 1e6:,.2f}" if count >= 1e6 else f"{count / 1e6:.3f}"


def ours(entry: Entry, metric: str) -> str:
    """What was measured; a dash if nothing was."""
    if entry.mean is None:
        return "failed" if entry.failed else DASH
    return with_spread(entry.mean, entry.std, metric)


def seeds_note(entry: Entry) -> str:
    """How many seeds have finished, if some but not all have."""
    if len(entry.values) in (0, len(entry.runs)):
        return ""
    return f"[{len(entry.values)} of {len(entry.runs)} seeds]"


def papers(entry: Entry, metric: str) -> str:
    """The paper's figure, or nothing."""
    return with_spread(entry.paper.mean, entry.paper.std, metric) if entry.paper else ""


def both_counts(entry: Entry) -> str:
    """Millions of numbers as the paper counts, and as stored; nothing if nothing was run."""
    stored = entry.numbers("stored")
    return "" if stored is None else f"{millions(entry.numbers('paper'))} / {millions(stored)}"


def standing(table: Table) -> str:
    """How much of a table is there, in words."""
    wanted, failed = len(table.runs), len(table.failures)
    missing = wanted - table.done - failed
    counts = sorted({len(about["seeds"]) for about in table.data.values()}) or [0]
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    seeds += " seed" + "s" * (counts[-1] != 1)
    if not missing and not failed:
        return f"{wanted} run{'s' * (wanted != 1)}, {seeds}, all finished"
    parts = [f"{table.done} of {wanted} runs finished ({seeds})"]
    parts += [f"{missing} missing"] * bool(missing) + [f"{failed} failed"] * bool(failed)
    return ", ".join(parts)


def about_row(table: Table, position: int) -> str:
    """What else there is to say of a row: quoted, with which encoder, replaying what."""
    row = table.lines[position].row
    parts = []
    if row.quoted:
        parts += ["quoted", row.backbone or table.experiment.paper_backbone]
    parts.append(f"replays {row.replay}" if row.replay else "")
    if row.numbers is not None:
        parts.append(f"paper: {row.numbers:.2f} M numbers")
    return "; ".join(part for part in parts if part)


def sentence(text: str) -> str:
    """With a capital letter in front; others stay as they are.

    >>> sentence("mean R")
    'Mean R'
    """
    return text[:1].upper() + text[1:]
