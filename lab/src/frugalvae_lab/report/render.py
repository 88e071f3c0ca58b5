"""Fill the templates of this package: HTML and Markdown, each with its own escaping.

Numbers and states are written the same in both. Templates use the functions of
:data:`FILTERS` as filters: ``{{ entry | ours }}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from frugalvae.formatting import plural, quoted, size
from frugalvae.pages.render import environment
from frugalvae_lab.report.tables import RATIOS, Entry, Line, Table

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def render(template: str, **content: Any) -> str:
    """Fill a template of this package, which may extend those of :mod:`frugalvae.pages`.

    Everything inserted is escaped for the format that the template's ending names, unless the
    template says ``safe``.

    Parameters
    ----------
    template
        File name in the folder ``templates``.
    content
        Values of the template's names.
    """
    made = environment(__package__)
    made.filters.update(FILTERS)
    if template.endswith(".md"):
        from markupsafe import Markup

        made.autoescape = False
        made.finalize = lambda text: (
            text if isinstance(text, Markup) else escape_markdown(str(text))
        )
    return made.get_template(template).render(content)


def escape_markdown(text: str) -> str:
    r"""Text that Markdown shows as it is.

    >>> print(escape_markdown("a|b *c* <d>"))
    a\|b \*c\* &lt;d>
    """
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", text).replace("<", "&lt;")


# --------------------------------------------------------------------------- in words


def millions(number: float | None) -> str:
    """A count in millions; a dash if there is none.

    >>> millions(2_960_000), millions(1280)
    ('2.96', '0.001')
    """
    if number is None:
        return DASH
    return f"{number / 1e6:,.2f}" if number >= 1e6 else f"{number / 1e6:.3f}"


def ratio(number: float) -> str:
    """A ratio of any size, to two or three digits.

    >>> ratio(0.5162), ratio(0.0027), ratio(0.000123), ratio(0.0)
    ('0.516', '0.0027', '1.2e-04', '0')
    """
    if not number:
        return "0"
    digits = 3 if abs(number) >= 0.01 else 4
    return f"{number:.{digits}f}" if abs(number) >= 0.001 else f"{number:.1e}"


def value(number: float, metric: str) -> str:
    r"""A value of a table: ratios as they are, percent to one decimal.

    >>> value(66.5123, "final_average_accuracy"), value(0.000123, "proportion")
    ('66.5', '1.2e-04')
    >>> value(-17.2, "forgetting") == "\N{MINUS SIGN}17.2"
    True
    """
    text = ratio(number) if metric in RATIOS else f"{round(number, 1) + 0.0:.1f}"
    return text.replace("-", MINUS, 1) if number < 0 else text


def with_spread(mean: float, std: float | None, metric: str) -> str:
    """Mean and standard deviation; a single value has no deviation.

    >>> with_spread(66.512, 0.31, "forgetting"), with_spread(66.512, None, "forgetting")
    ('66.5 ± 0.3', '66.5')
    """
    return value(mean, metric) + (f" ± {value(std, metric)}" if std is not None else "")


def ours(entry: Entry) -> str:
    """What was measured; ``failed``, or a dash, if nothing was."""
    if entry.mean is None:
        return "failed" if entry.failed else DASH
    return with_spread(entry.mean, entry.std, entry.metric)


def papers(entry: Entry) -> str:
    """The paper's figure; empty if it has none."""
    return with_spread(entry.paper.mean, entry.paper.std, entry.metric) if entry.paper else ""


def difference(entry: Entry) -> str:
    """Ours minus the paper's, with its sign; empty if either is missing."""
    if entry.difference is None:
        return ""
    text = value(entry.difference, entry.metric)
    return text if text.startswith(MINUS) or text in ("0.0", "0") else f"+{text}"


def comparison(entry: Entry) -> str:
    """The paper's figure and the difference."""
    return ", ".join(filter(None, (papers(entry), difference(entry))))


def seeds(entry: Entry) -> str:
    """How many seeds have finished, if some but not all have."""
    if len(entry.values) in (0, len(entry.runs)):
        return ""
    return f"[{len(entry.values)} of {len(entry.runs)} seeds]"


def parameters(entry: Entry) -> str:
    """Millions of parameters, as the paper counts / as stored; empty if nothing was run."""
    if not entry.records:
        return ""
    return f"{millions(entry.parameters('paper'))} / {millions(entry.parameters('stored'))}"


def status(table: Table) -> str:
    """How many runs of a table have finished, are missing and have failed."""
    wanted, failed = len(table.runs), len(table.failures)
    missing = wanted - table.done - failed
    counts = sorted({len(about["seeds"]) for about in table.data.values()}) or [0]
    seeds = f"{counts[0]} to " * (counts[0] != counts[-1]) + plural(counts[-1], "seed")
    if not missing and not failed:
        return f"{plural(wanted, 'run')}, {seeds}, all finished"
    parts = [f"{table.done} of {wanted} runs finished ({seeds})"]
    parts += [f"{missing} missing"] * bool(missing) + [f"{failed} failed"] * bool(failed)
    return ", ".join(parts)


def remark(line: Line, table: Table) -> str:
    """What else to say about a row: whether it is quoted, its encoder, what it replays."""
    row = line.row
    parts = ["quoted", row.backbone or table.experiment.paper_backbone] if row.quoted else []
    parts.append(f"replays {row.replay}" if row.replay else "")
    if row.parameters is not None:
        parts.append(f"paper: {row.parameters:.2f} M parameters")
    return "; ".join(filter(None, parts))


def checked(labels: Mapping[str, str]) -> str:
    """The labels of a row in one cell: names of those with a check mark, other values, or a dash.

    >>> checked({"FPI": "✓", "frozen": "✗", "steps": "60"})
    'FPI, steps 60'
    """
    named = [
        name if text == "✓" else f"{name} {text}"
        for name, text in labels.items()
        if text not in ("", "✗")
    ]
    return ", ".join(named) or DASH


def decimal(number: float | None) -> str:
    """A number to one decimal; a dash for none.

    >>> decimal(68.44), decimal(1234.5), decimal(None) == DASH
    ('68.4', '1,234.5', True)
    """
    return DASH if number is None else f"{round(number, 1) + 0.0:,.1f}"


def signed(number: float) -> str:
    """A difference to one decimal, with its sign.

    >>> signed(0.31), signed(-0.04), signed(-2.5) == f"{MINUS}2.5"
    ('+0.3', '0.0', True)
    """
    text = decimal(number).replace("-", MINUS)
    return text if text.startswith(MINUS) or text == "0.0" else f"+{text}"


def small(p: float) -> str:
    """A probability.

    >>> small(0.034), small(0.000012)
    ('0.034', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def sizes(bounds: tuple[float, float] | None) -> str:
    """Fewest and most bytes.

    >>> sizes((1.2e6, 4.0e6)), sizes((5e5, 4e6))
    ('1.2 to 4.0 MB', '500.0 kB to 4.0 MB')
    """
    if bounds is None:
        return DASH
    low, high = (size(round(bound)) for bound in bounds)
    if low == high:
        return low
    (number, unit), other = low.split(), high.split()[1]
    return f"{number if unit == other else low} to {high}"


FILTERS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(millions, ratio, checked, quoted, decimal, signed, small, sizes),
        *(ours, papers, difference, comparison, seeds, parameters, status, remark),
    )
}
