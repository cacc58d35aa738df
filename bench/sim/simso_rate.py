"""Simulates one set of periodic tasks under SimSo's EDF and prints the jobs and the CPU time, s.

usage: simso_rate.py SECONDS PERIOD_US:WCET_US...
"""

import sys
import time

from simso.configuration import Configuration
from simso.core import Model

seconds, *tasks = sys.argv[1:]
configuration = Configuration()
configuration.duration = int(float(seconds) * 1000 * configuration.cycles_per_ms)
configuration.etm = "wcet"
for number, task in enumerate(tasks):
    period, wcet = (int(text) / 1000 for text in task.split(":"))
    configuration.add_task(
        name=f"t{number}",
        identifier=number,
        period=period,
        activation_date=0,
        wcet=wcet,
        deadline=period,
    )
configuration.add_processor(name="CPU 0", identifier=0)
configuration.scheduler_info.clas = "simso.schedulers.EDF_mono"
configuration.check_all()
model = Model(configuration)
begun = time.process_time()
model.run_model()
took = time.process_time() - begun
print(sum(len(task.jobs) for task in model.task_list), took)
