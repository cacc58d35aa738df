"""The tables of docs/experiments.md, from the JSON of its parts.

A block of the document stands between `<!-- figures: NAME -->` and `<!-- end of figures -->`; what
is between them is written by the function `NAME` (`-` as `_`) of the parts that it needs.
"""

import re

from article import KINDS, article, by_kind, determinism, late
from cells import both, machine_of, not_possible, percent, prose, seen, spread, table, us

BLOCK = re.compile(
    r"(<!-- figures: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL
)


def fill(text, parts):
    """The document with its blocks, and the names of those whose parts are not there."""
    missing = []

    def block(match):
        name = match["name"]
        try:
            lines = BLOCKS[name](parts)
        except KeyError as part:
            missing.append(f"{name} (no {part.args[0]})")
            return match.group(0)
        return match.group(1) + "\n" + "\n".join(lines) + "\n\n" + match.group(3)

    return BLOCK.sub(block, text), missing


def result(parts, part, file=None):
    return parts[part][file or part]["result"]


def overhead(parts, key):
    """A part of `measure overhead`, and where it was measured."""
    whole = result(parts, "overhead")
    return whole[key], seen(parts["overhead"], whole)


def rtai_tables_2_3(parts):
    events, lines = overhead(parts, "events")
    name = {"rtai": "RTAI tasks (Table 2)", "lxrt": "LXRT tasks (Table 3)"}
    rows = [
        (f"{name[row['tasks']]}, {row['cpu']}", "", both(row["average"]), both(row["max"]), "")
        for row in events["paper"]
    ]
    for row in events["rows"]:
        what = f"**{row['host']} host, {row['tasks']}**"
        if row["not_possible"]:
            rows.append((what, "-", "-", "-", not_possible(row)))
            continue
        own = row["dispatcher"]
        handler = (
            f"{both(own['handler_average'])}; max {both(own['handler_max'])}" if own else ""
        )
        median = spread(row["switch"], "p50")
        rows.append((what, median, both(row["average"]), both(row["max"]), handler))
    heads = (
        "what an event takes, us (cycles)",
        "median",
        "average",
        "maximum",
        "of it, our dispatcher",
    )
    return lines + table(heads, rows)


def rtai_fig_6(parts):
    budgets, lines = overhead(parts, "budgets")
    paper = f"at most {budgets['paper_violations']} of 500"
    rows = []
    for row in budgets["rows"]:
        host = f"{row['host']} host" + (", with the player" if row["with_player"] else "")
        if row["not_possible"]:
            rows.append((host, "-", "-", "-", "-", "-", not_possible(row)))
        for task in row["tasks"]:
            rows.append(
                (
                    f"{host}: {task['name']}",
                    task["periods"],
                    percent(task["average_ppm"]),
                    f"{percent(task['least_ppm'])} to {percent(task['most_ppm'])}",
                    task["off_1_percent"],
                    task["off_5_percent"],
                    paper if task["name"] != "player" else "about 10 %",
                )
            )
    heads = (
        "task",
        "periods",
        "all of them",
        "range",
        "off > 1 %",
        "off > 5 %",
        "paper: violations",
    )
    return lines + table(heads, rows)


def red_linux_table_5(parts):
    decisions, lines = overhead(parts, "decisions")
    paper = {row["jobs"]: row for row in decisions["paper"]}
    rows = []
    for row in decisions["rows"]:
        of_paper = paper.get(row["jobs"])
        times = [both(row[name]) for name in ("min", "average", "max")]
        theirs = [both(of_paper[n]) if of_paper else "" for n in ("min", "average", "max")]
        rows.append((row["jobs"], row["build"], *times, *theirs))
    heads = ("jobs", "build", "min", "average", "max", "paper: min", "average", "max")
    lines += table(heads, rows)
    if decisions["bpf_not_possible"]:
        lines += [
            "",
            *prose(f"As BPF it was not measured here: {decisions['bpf_not_possible']}."),
        ]
    return lines


def rt_linux_square_wave(parts):
    wave, lines = overhead(parts, "square_wave")
    rows = [
        (
            "RT-Linux, " + wave["paper_cpu"],
            "1 and 2",
            "all three",
            "",
            both(wave["paper_variation"]),
            "",
        )
    ]
    for row in wave["rows"]:
        figures = row["not_possible"] or spread(row["lateness"], "p50", "p99", "max")
        rows.append(
            (
                row["host"],
                row["tasks"],
                row["load"],
                figures,
                both(row["variation"]),
                row["skipped"],
            )
        )
    heads = (
        "by",
        "tasks",
        "load",
        "late: p50 / p99 / max, us",
        "worst variation, us (cycles)",
        "skipped",
    )
    return lines + table(heads, rows)


# RED-Linux, Table 6, us: min, average, max.
TABLE_6 = {
    "idle": (1, 1, 37),
    "memory": (1, 4, 87),
    "caps-lock": (1, 2, 9166),
    "console": (1, 1, 63),
    "io-both": (1, 1, 94),
    "io-write": (1, 1, 49),
    "io-read": (1, 1, 75),
    "procfs": (1, 2, 115),
    "fork": (1, 4, 117),
    "non-real-time": (14304, 19880, 21144),
}


def red_linux_table_6(parts):
    whole = result(parts, "latency")
    rows = []
    for row in whole["rows"]:
        paper = " / ".join(f"{us:,}" for us in TABLE_6.get(row["workload"], ()))
        times = row["latency"]
        if times is None:
            rows.append((row["workload"], "", row["not_possible"] or "not measured", "", paper))
            continue
        figures = spread(times, "min", "average", "max")
        rows.append(
            (
                row["workload"],
                f"{times['count']:,}",
                figures,
                spread(times, "p50", "p99"),
                paper,
            )
        )
    heads = (
        "load",
        "periods",
        "ours: min / average / max, us",
        "p50 / p99",
        "paper: min / average / max",
    )
    return seen(parts["latency"], whole) + table(heads, rows)


def kernels(parts):
    """Each kernel's results of a kind, by its folder."""
    found = parts["kernels"]
    names = sorted({name.split("/")[0] for name in found if "/" in name})
    return {
        name: {
            what.split("/")[1]: d["result"] or d["error"]
            for what, d in found.items()
            if what.startswith(name + "/")
        }
        for name in names
    }


def kernels_determinism(parts):
    of = kernels(parts)
    heads = ["kind"]
    columns = []
    for results in of.values():
        whole = results["determinism"]
        for run in whole["runs"]:
            heads.append(f"{whole['machine']['kernel']}, {run['rate_hz']} Hz")
            columns.append(by_kind(run))
    rows = [
        (kind, *(" / ".join(us(ns) for ns in column[kind]) for column in columns))
        for kind in KINDS
    ]
    first = next(iter(of.values()))["determinism"]
    seconds = first["runs"][0]["duration_ns"] // 10**9
    lines = [f"{seconds} s at each heart beat, one CPU; {machine_of(first).split(';')[0]}.", ""]
    for name, results in of.items():
        kernel = machine_of(results["determinism"]).split("; ")[1]
        lines += prose(f"{name}: {kernel}. {late(results['determinism']['runs'])}", "- ")
    return lines + [""] + table(heads, rows)


def kernels_latency(parts):
    of = kernels(parts)
    loads = [row["workload"] for row in next(iter(of.values()))["latency"]["rows"]]
    rows = []
    for load in loads:
        cells = [load]
        for results in of.values():
            row = next(r for r in results["latency"]["rows"] if r["workload"] == load)
            cells.append(spread(row["latency"], "p50", "p99", "max"))
        rows.append(cells)
    return table(["load", *(r["latency"]["machine"]["kernel"] for r in of.values())], rows)


def kernels_set(parts):
    rows = []
    for name, results in kernels(parts).items():
        for host in ("user", "kernel"):
            if "cause" in results[host]:
                why = " ".join(results[host]["cause"].split(";")[0].split())
                rows.append((name, host, f"not possible: {why}", *[""] * 5))
            for task in results[host].get("tasks", ()):
                received = task["budget_received"] or {}
                latency = task["release_latency"] or {}
                rows.append(
                    (
                        name,
                        host,
                        task["name"],
                        task["periods"],
                        task["misses"],
                        percent(task["long_run_ppm"]),
                        percent(received.get("worst_ppm")),
                        " / ".join(
                            us(latency.get(key)) for key in ("median_ns", "p99_ns", "worst_ns")
                        ),
                    )
                )
    heads = (
        "kernel",
        "host",
        "task",
        "periods",
        "missed",
        "received",
        "worst period",
        "release latency: median / p99 / worst, us",
    )
    return table(heads, rows)


def equal(parts):
    of = parts["equal"]["equal"]
    files = ", ".join(of["files"])
    return prose(
        f"Two runs under {of['kernel']}: {len(of['files'])} files, {of['bytes']:,} bytes, "
        f"all equal: {files}."
    )


def tests(parts):
    rows = [
        (t["what"], f"`cargo test -p {t['package']} --test {t['program']}`", len(t["tests"]))
        for t in parts["tests"]["tests"]
    ]
    return table(("example", "command", "tests passed"), rows)


BLOCKS = {
    function.__name__.replace("_", "-"): function
    for function in (
        rtai_tables_2_3,
        rtai_fig_6,
        red_linux_table_5,
        red_linux_table_6,
        rt_linux_square_wave,
        article,
        determinism,
        kernels_determinism,
        kernels_latency,
        kernels_set,
        equal,
        tests,
    )
}
