/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What the kernel prints of this scheduler when it ends by an error, or on SysRq-D: ops.dump and
 * ops.dump_task, with interrupts off and on any CPU. Domains are read without a lock: a value may
 * be out of date, or two values of different decisions, which a reader of the dump can live with.
 */
#pragma once

PD_INLINE void dump_domain(__u32 domain) __any_state
{
	struct punctual_domain *c = DOMAIN(domain);
	pd_ref d = PD_AT(domain);

	dump_line("domain %llu, CPU %llu: now %llu, next event %llu\n", domain, domain_cpu(domain),
		  bpf_ktime_get_ns(), c->next_event);
	dump_line("  timer expires at %llu, timer process wakes at %llu\n", c->expires,
		  TIMER_PROCESS(domain)->wakes);
	dump_line("  selected: job 0x%llx, task %lld, allowance %llu, throttled %llu\n",
		  PD_CPU(d, 0)->selected, (__s32)c->choice, c->allowance, c->throttled);
	dump_line("  running: task %lld\n", (__s32)c->task);
	dump_line("  queued: %lld of the selected task, %lld allocators, %llu best-effort\n",
		  c->choice == PD_NONE ? 0 : scx_bpf_dsq_nr_queued(TASK_QUEUE(domain, c->choice)),
		  scx_bpf_dsq_nr_queued(ALLOCATOR_QUEUE(domain)),
		  fair_nr_queued(domain_cpu(domain)));
}

PD_INLINE void dump_domains(void) __any_state
{
	__u32 domain = 0;

	pd_while (domain < PD_DOMAINS) {
		if (cpu_of[IN_DOMAINS(domain)] && pd_blocks[IN_DOMAINS(domain)])
			dump_domain(domain);
		domain++;
	}
}

PD_INLINE void dump_member(struct member *m) __any_state
{
	struct punctual_task *t = TASK_OF(m->domain, m->task);

	dump_line("  domain %llu, task %llu: place %llu, counted %llu, left %llu\n", m->domain,
		  m->task, m->place, m->counted, m->left);
	dump_line("  its task: %llu threads, %llu runnable, %lld ns uncharged, background %llu\n",
		  t->members, t->runnable, t->uncharged, t->background);
}
