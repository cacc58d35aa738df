/* SPDX-License-Identifier: MIT */
/* The calls of a motion controller's back end: threads of 1 ms, started, paused, and cancelled. */
#include "hard_tasks.h"

#include <atomic>

namespace
{
const long PERIOD_NS = 1 * MS;
const long BUDGET_NS = PERIOD_NS * 2 / 5;

class ControlThread
{
public:
	ControlThread(unsigned long name, long budget_ns) : name(name), budget_ns(budget_ns)
	{
		pthread_attr_t attributes;
		sched_param parameters{};

		CHECK(pthread_attr_init(&attributes) == 0);
		CHECK(pthread_attr_setstacksize(&attributes, 1 << 20) == 0);
		if (geteuid() == 0) {
			parameters.sched_priority = 1;
			CHECK(pthread_attr_setschedpolicy(&attributes, SCHED_FIFO) == 0);
			CHECK(pthread_attr_setschedparam(&attributes, &parameters) == 0);
			CHECK(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
		}
		CHECK(pthread_create(&thread, &attributes, wrapper, this) == 0);
		pthread_attr_destroy(&attributes);
	}

	~ControlThread()
	{
		is_cancelled = true;
		join(thread);
		/* The task has ended with its thread. */
		CHECK(rt_get_adr(name) == nullptr);
	}

	/* make_hard has an end of its own. */
	void await_cycles()
	{
		while (!task)
			sleep_ms(1);
		UNTIL(cycles > 50);
	}

	/* Has the next cycle execute for so long, and returns by how many periods that was late. */
	int overrun(long ns)
	{
		late = 0;
		load_ns = ns;
		UNTIL(load_ns == 0);
		return late;
	}

	std::atomic<long> cycles{0};
	std::atomic<RT_TASK *> task{nullptr};

private:
	static void *wrapper(void *argument)
	{
		static_cast<ControlThread *>(argument)->run();
		return nullptr;
	}

	void run()
	{
		RT_TASK *self = rt_task_init_schmod(name, 1, 0, 0, SCHED_FIFO,
						    1 << (sysconf(_SC_NPROCESSORS_ONLN) - 1));

		CHECK(self);
		rt_set_periodic_mode();
		start_rt_timer((int)nano2count(PERIOD_NS));
		RETURNS(rt_task_use_fpu(self, 1), 0);
		make_hard();
		if (budget_ns)
			RETURNS(rt_task_make_periodic_budget(self, rt_get_time() + PERIOD_NS, PERIOD_NS,
							     budget_ns), 0);
		else
			RETURNS(rt_task_make_periodic_relative_ns(self, PERIOD_NS, PERIOD_NS), 0);
		task = self;
		for (;;)
			cycle();
	}

	void cycle()
	{
		RTIME due = rt_task_next_period();

		if (is_cancelled) {
			rt_make_soft_real_time();
			pthread_exit(nullptr);
		}
		if (load_ns) {
			RTIME first = due;

			execute(load_ns);
			while (wait(due) == RTE_TMROVRN)
				due = rt_task_next_period();
			/* By the releases: one wait can end several that the machine slept through. */
			late = (rt_task_next_period() - first) / nano2count(PERIOD_NS) - 1;
			load_ns = 0;
		} else {
			wait(due);
		}
		cycles++;
	}

	static int wait(RTIME due)
	{
		int result = rt_task_wait_period();

		CHECK(result == 0 || result == RTE_TMROVRN);
		CHECK(rt_get_cpu_time_ns() >= due || result == RTE_TMROVRN);
		return result;
	}

	unsigned long name;
	long budget_ns;
	pthread_t thread;
	std::atomic<bool> is_cancelled{false};
	std::atomic<long> load_ns{0};
	std::atomic<int> late{0};
};

void is_paused_and_resumed(ControlThread &thread)
{
	long before;

	thread.await_cycles();
	RETURNS(rt_task_suspend(thread.task), 1);
	/* Once it does not continue, it is suspended. */
	UNTIL((before = thread.cycles, sleep_ms(20), thread.cycles == before));
	RETURNS(rt_task_resume(thread.task), 0);
	UNTIL(thread.cycles > before + 50);
}

void keeps_to_its_budget(ControlThread &thread)
{
	thread.await_cycles();
	/* Some forty budgets; without one it would be late by sixteen periods. */
	CHECK(thread.overrun(40 * BUDGET_NS) >= 24);
}
}

int main()
{
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	{
		ControlThread servo(1, 0);

		is_paused_and_resumed(servo);
	}
	{
		ControlThread servo(2, BUDGET_NS);

		keeps_to_its_budget(servo);
	}
	RETURNS(rt_sleep(nano2count(MS)), 0);
	stop_rt_timer();
	RETURNS(rt_task_delete(nullptr), 0);
	return 0;
}
