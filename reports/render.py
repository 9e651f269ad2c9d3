"""Renderers: one `Table` as Markdown, as LaTeX (booktabs, compiles as it is) and as CSV.

Every text is escaped for its format: labels and task ids come from users, reasons from models.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from harness.show import visible
from reports.table import Column, Entry, Table

LATEX: Final = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "–": "--", "†": r"\textsuperscript{\textdagger}", "×": r"$\times$",
    "−": "$-$", "[": "{[}", "]": "{]}",
}  # fmt: skip
LONG: Final = 24
# Shrinks a table that is wider than the line, and leaves any other as it is.
FIT: Final = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def markdown(table: Table) -> str:
    """The table with title, caption and notes as GitHub Markdown."""
    heads = [f"{c.group} {c.head}".strip() for c in table.columns]
    lines = [f"**{md(table.title)}** " + " ".join(md(text) for text in table.caption), ""]
    lines.append("| " + " | ".join(md(head) for head in heads) + " |")
    lines.append("| " + " | ".join("---:" if c.numeric else "---" for c in table.columns) + " |")
    lines += ["| " + " | ".join(_md_entry(item) for item in row) + " |" for row in table.body]
    if table.notes:
        lines += ["", *(f"- {md(note)}" for note in table.notes)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """The table as LaTeX `table` environments; needs the packages booktabs and graphicx.

    A table longer than a page is cut into parts of `LONG` rows, caption with the first, notes with the last.
    """
    parts = [table.body[start : start + LONG] for start in range(0, len(table.body), LONG)] or [table.body]
    made = []
    for i, body in enumerate(parts):
        first, last = i == 0, i == len(parts) - 1
        count = f" ({i + 1} of {len(parts)})" if len(parts) > 1 else ""
        part = replace(
            table,
            name=table.name if first else f"{table.name}-{i + 1}",
            title=table.title.removesuffix(".") + count + "." if count else table.title,
            body=body,
            caption=table.caption if first else (),
            notes=table.notes if last else (),
        )
        made.append(_latex(part))
    return "\n".join(made)


def document(study: str, tables: Iterable[Table]) -> str:
    """A LaTeX document that holds every table of a report; compile it where their `.tex` files lie."""
    head = [r"\documentclass[a4paper]{article}", r"\usepackage[utf8]{inputenc}"]
    head += [r"\usepackage{booktabs}", r"\usepackage{graphicx}", r"\usepackage[margin=18mm]{geometry}"]
    # Floats wait for pages; a table a page is cleared, so that their number has no limit.
    body = [rf"\input{{{table.name}.tex}}\clearpage" for table in tables]
    return "\n".join([f"% {tex(study)}", *head, r"\begin{document}", *body, r"\end{document}", ""])


def _latex(table: Table) -> str:
    spec = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [r"% needs \usepackage{booktabs} and \usepackage{graphicx}"]
    lines += [r"\begin{table}[t]", r"\centering", rf"\caption{{{_caption(table)}}}", rf"\label{{tab:{table.name}}}"]
    lines += [r"\small", FIT, rf"\begin{{tabular}}{{{spec}}}", r"\toprule", *_tex_heads(table.columns), r"\midrule"]
    for row in table.body:
        lines += _tex_row(row)
    lines += [r"\bottomrule", r"\end{tabular}}"]
    if table.notes:
        lines += ["", r"\smallskip", r"\begin{minipage}{\linewidth}\footnotesize\raggedright"]
        lines += [rf"{tex(note)}\par" for note in table.notes] + [r"\end{minipage}"]
    return "\n".join([*lines, r"\end{table}", ""])


def to_csv(table: Table) -> str:
    """The tidy rows in full precision; an unknown value is empty."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in table.data for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n", restval="")
    writer.writeheader()
    # A name from outside may hold what steers a terminal.
    writer.writerows({k: visible(v) if isinstance(v, str) else v for k, v in row.items()} for row in table.data)
    return out.getvalue()


def md(text: str) -> str:
    """Text that Markdown shows as it is."""
    for sign in "\\`*_|<>":
        text = text.replace(sign, "\\" + sign)
    # A bracket is plain text unless it could open a link.
    return " ".join(text.replace("](", "\\](").replace("][", "\\][").split())


def tex(text: str) -> str:
    """Text that LaTeX shows as it is; signs that its usual fonts lack become a question mark."""
    return "".join(LATEX.get(c, c if " " <= c <= "ſ" else ("?" if c.strip() else " ")) for c in text)


def _md_entry(item: Entry) -> str:
    parts = [md(item.text) + item.marks, md(item.interval), md(f"({item.extra})") if item.extra else ""]
    return " ".join(part for part in parts if part)


def _caption(table: Table) -> str:
    return rf"\textbf{{{tex(table.title)}}} " + " ".join(tex(text) for text in table.caption)


def _tex_heads(columns: Sequence[Column]) -> Iterator[str]:
    if any(column.group for column in columns):
        spans = [(group, len(list(members))) for group, members in groupby(columns, key=lambda c: c.group)]
        top = [
            rf"\multicolumn{{{size}}}{{c}}{{{tex(group)}}}" if group else " & " * (size - 1) for group, size in spans
        ]
        yield " & ".join(top) + r" \\"
        at = 1
        rules = []
        for group, size in spans:
            if group:
                rules.append(rf"\cmidrule(lr){{{at}-{at + size - 1}}}")
            at += size
        yield " ".join(rules)
    yield " & ".join(tex(column.head) for column in columns) + r" \\"


def _tex_row(row: Sequence[Entry]) -> Iterator[str]:
    yield " & ".join(tex(item.text + item.marks) for item in row) + r" \\"
    small = [" ".join(filter(None, (item.interval, f"({item.extra})" if item.extra else ""))) for item in row]
    if any(small):
        yield " & ".join(rf"{{\scriptsize {tex(text)}}}" if text else "" for text in small) + r" \\[2pt]"
