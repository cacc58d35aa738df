/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* How the scheduler ends itself, and how user space learns that it ended, by whatever cause. */
#ifndef PUNCTUAL_EXIT_H
#define PUNCTUAL_EXIT_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct punctual_exit);
} exit_info SEC(".maps");

/* All tasks go back to the normal class. `code` is commands.h's, `said` a text with one %llu for
 * `number`. */
#define end_scheduler(code, text, number)                                                    \
	({                                                                                   \
		static char end_text[] = text;                                               \
		unsigned long long end_number = (number);                                    \
		scx_bpf_exit_bstr((__s64)(code), end_text, &end_number, sizeof(end_number)); \
	})

/* The scheduler has ended, and decisions have no effect any more. */
__u32 has_ended;

PD_INLINE void ended(struct scx_exit_info *info)
{
	__u32 zero = 0;
	struct punctual_exit *e = bpf_map_lookup_elem(&exit_info, &zero);

	has_ended = 1;
	if (!e)
		return;
	bpf_probe_read_kernel_str(e->reason, sizeof(e->reason), info->reason);
	bpf_probe_read_kernel_str(e->message, sizeof(e->message), info->msg);
	e->code = info->exit_code;
	e->kind = info->kind;
}

#endif
