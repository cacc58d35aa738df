"""The tables of the article on rt-exec, beside what `punctual measure determinism` measured."""

from cells import seen, table, us


# The article's tables, by kind: best, worst and determinism of the worst task of the kind, us.
ARTICLE = {
    "stock 2.6.16, 250 Hz": {
        "exec": (3, 15, 12),
        "dth": (14, 82, 68),
        "sth": (13, 82, 69),
        "sem": (5, 61, 55),
        "sig": (5, 38, 32),
        "hrt": (1566, 2151, 585),
        "hrn": (2450, 3167, 717),
        "hru": (2227, 3187, 960),
        "bth": (11, 203, 168),
    },
    "2.6.17-rt, 250 Hz": {
        "exec": (0, 174, 174),
        "dth": (17, 522, 505),
        "sth": (14, 311, 297),
        "sem": (3, 294, 291),
        "sig": (7, 227, 220),
        "hrt": (14, 330, 314),
        "hrn": (9, 350, 340),
        "hru": (9, 343, 334),
        "bth": (15, 386, 371),
    },
    "2.6.17-rt, 1000 Hz": {
        "exec": (0, 263, 263),
        "dth": (18, 417, 399),
        "sth": (14, 330, 316),
        "sem": (3, 311, 308),
        "sig": (7, 271, 264),
        "hrt": (13, 222, 209),
        "hrn": (10, 306, 296),
        "hru": (10, 329, 318),
        "bth": (15, 357, 341),
    },
}
KINDS = list(ARTICLE["2.6.17-rt, 1000 Hz"])


def by_kind(run):
    """Best, worst and greatest determinism of each kind, ns; the executive apart."""
    kinds = {}
    for task in run["tasks"]:
        kind = "exec" if task["name"] == "exec" else task["kind"]
        kinds.setdefault(kind, []).append(task)
    end = lambda of, name, choose: choose(
        (t[name] for t in of if t[name] is not None), default=None
    )
    return {
        kind: (
            end(of, "best_ns", min),
            end(of, "worst_ns", max),
            end(of, "determinism_ns", max),
        )
        for kind, of in kinds.items()
    }


def late(runs):
    return " ".join(
        f"At {run['rate_hz']} Hz {sum(t['late'] for t in run['tasks'])} of "
        f"{sum(t['cycles'] for t in run['tasks']):,} cycles were late."
        for run in runs
    )


def article(parts):
    rows = [
        (kind, *(" / ".join(f"{us:,}" for us in of[kind]) for of in ARTICLE.values()))
        for kind in KINDS
    ]
    return table(("kind", *ARTICLE), rows)


def determinism(parts):
    whole = parts["determinism"]["determinism"]["result"]
    runs = {f"{run['rate_hz']} Hz": by_kind(run) for run in whole["runs"]}
    rows = [
        (kind, *(" / ".join(us(ns) for ns in of[kind]) for of in runs.values()))
        for kind in KINDS
    ]
    lines = seen(parts["determinism"], whole) + table(("kind", *runs), rows)
    return lines + ["", late(whole["runs"])]
