"""Cells, tables and lines of the document: how figures are written."""

import re
import textwrap


def us(ns):
    if ns is None:
        return "-"
    value = ns / 1000
    return (
        f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    )


def not_possible(row):
    """The reason, without the parenthesis of details."""
    return re.sub(r" \(.*?\)", "", row["not_possible"])


def spread(figures, *names):
    return " / ".join(us(figures and figures[f"{name}_ns"]) for name in names)


def both(time):
    """A time in us, and in cycles where their rate is known."""
    if time is None:
        return "-"
    cycles = time.get("cycles")
    return us(time["ns"]) + (f" ({cycles:,})" if cycles is not None else "")


def percent(ppm):
    return "-" if ppm is None else f"{ppm / 10000:.2f} %"


def table(heads, rows):
    line = lambda cells: "| " + " | ".join(str(cell) for cell in cells) + " |"
    return [line(heads), "|" + "---|" * len(heads), *(line(row) for row in rows)]


def prose(text, item=""):
    """Lines of at most 100 columns; `item` begins an item of a list."""
    return textwrap.wrap(
        item + text,
        100,
        subsequent_indent=" " * len(item),
        break_on_hyphens=False,
        break_long_words=False,
    )


def machine_of(result):
    machine = result["machine"]
    preemption = machine["preemption"] or "not known"
    # Without the suffix of a local build.
    release, hz = machine["kernel"].split("-")[0], machine["hz"] or "?"
    kernel = f"Linux {release} (preemption {preemption}, HZ {hz})"
    virtual = ", a virtual machine" if machine["virtual_machine"] else ""
    cpus = len(machine["cpus"])
    return f"{machine['cpu_model']}, {cpus} CPU{'s' * (cpus > 1)}{virtual}; {kernel}"


def seen(part, result):
    """When, on what machine, and beside what load the figures were taken."""
    about = part["about"]
    load = f"{about['load_before']:.1f} before and {about['load_after']:.1f} after"
    lines = [
        f"{about['began']} UTC, {about['seconds']} s, load average {load}.",
        machine_of(result) + ".",
    ]
    lines += [f"Warning: {warning}." for warning in result.get("warnings", [])]
    return prose(" ".join(lines)) + [""]
