"""Simulates each set that the program `schedules` writes with SimSo, and compares the schedules.

Two schedules are the same up to ties if at every instant the jobs that they execute have the same
urgency: the period under RM, the absolute deadline under EDF; where no two jobs tie, that is the
same schedule job by job. Reads standard input; exits with 1 at the first difference.
"""

import json
import sys

from simso.configuration import Configuration
from simso.core import JobEvent, Model

SCHEDULERS = {"rm": "simso.schedulers.RM_mono", "edf": "simso.schedulers.EDF_mono"}
CYCLES_PER_MS = 1_000_000


def simso_stretches(given):
    """(task, from, to) as SimSo executes them; one of our ns is one of its ms."""
    configuration = Configuration()
    configuration.duration = given["end"] * CYCLES_PER_MS
    configuration.cycles_per_ms = CYCLES_PER_MS
    for number, (budget, period, deadline) in enumerate(given["tasks"]):
        configuration.add_task(
            name="t%d" % number,
            identifier=number + 1,
            period=period,
            activation_date=0,
            wcet=budget,
            deadline=deadline,
            abort_on_miss=True,
        )
    configuration.add_processor(name="CPU 0", identifier=1)
    configuration.scheduler_info.clas = SCHEDULERS[given["policy"]]
    configuration.check_all()
    model = Model(configuration)
    model.run_model()
    found = []
    for number, task in enumerate(model.task_list):
        began = None
        for at, event in task.monitor:
            if event.event == JobEvent.EXECUTE:
                began = at if began is None else began
            elif event.event in (JobEvent.PREEMPTED, JobEvent.TERMINATED, JobEvent.ABORTED):
                if began is not None and at > began:
                    found.append((number, began // CYCLES_PER_MS, at // CYCLES_PER_MS))
                began = None
        if began is not None:
            found.append((number, began // CYCLES_PER_MS, given["end"]))
    return found


def urgencies(given, stretches):
    """What executes in each ns: None, or the urgency of the job."""
    slots = [None] * given["end"]
    for number, begin, end in stretches:
        _, period, deadline = given["tasks"][number]
        for at in range(begin, min(end, given["end"])):
            if slots[at] is not None:
                sys.exit("set %s: two at once at %d" % (given["seed"], at))
            # Deadlines are within periods and met: the job is that of the latest release.
            slots[at] = period if given["policy"] == "rm" else at // period * period + deadline
    return slots


def main():
    sets = {"rm": 0, "edf": 0}
    busy = 0
    for line in sys.stdin:
        given = json.loads(line)
        ours = urgencies(given, given["executed"])
        theirs = urgencies(given, simso_stretches(given))
        for at, (mine, its) in enumerate(zip(ours, theirs)):
            if mine != its:
                place = f"set {given['seed']} under {given['policy']}: at {at}"
                print(f"{place} ours executes {mine}, SimSo's {its};"
                      f" tasks (budget, period, deadline): {given['tasks']}")
                return 1
        sets[given["policy"]] += 1
        busy += sum(slot is not None for slot in ours)
    if not all(sets.values()):
        print("no sets were compared")
        return 1
    print(f"SimSo: the same schedules for {sets['rm']} sets under RM and {sets['edf']} under EDF"
          f" ({busy} busy slots)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
