/* SPDX-License-Identifier: MIT */
/* The calls of the paper, and programs that are loaded. */
#include "rtlinux.h"

void call_paper(struct stream *in)
{
	RTime time = soon(in), period = (RTime)stream_number(in);
	RTime *start = stream_byte(in) % 8 ? &time : NULL;

	count_or_errno(RTget_time(stream_byte(in) % 8 ? &time : NULL));
	switch (stream_below(in, 3)) {
	case 0:
		count_or_errno(RTset_params(start, stream_byte(in) % 4 ? &period : NULL, number(in)));
		break;
	case 1:
		count_or_errno(RTwait_start(start, stream_byte(in) % 4 ? &period : NULL, number(in)));
		break;
	case 2:
		/* It is woken. */
		count_or_errno(RTwait_period());
		break;
	}
}

void call_program(struct stream *in)
{
	static const char *const files[] = { "/bin/true", "/bin/true", "/", "", NULL, "no program" };
	uint32_t slot = stream_below(in, SLOTS);
	int pid = stream_byte(in) % 8 ? held.pid[slot] : number(in), status;

	switch (stream_below(in, 4)) {
	case 0:
		if (held.pid[slot] <= 0) {
			held.pid[slot] = count_or_errno(RTload(files[stream_below(in, 6)]));
			held.is_started[slot] = false;
		}
		break;
	case 1:
		if (count_or_errno(RTrun(pid)) == 0 && pid == held.pid[slot])
			held.is_started[slot] = true;
		break;
	case 2:
		count_or_errno(RTkill(pid));
		break;
	case 3:
		/* One that is held has no end. */
		if (pid == held.pid[slot] && !held.is_started[slot])
			RTkill(pid);
		for (int n = 0; n < SLOTS; n++)
			if (pid == held.pid[n] && !held.is_started[n])
				RTkill(pid);
		count_or_errno(RTwait(pid, stream_below(in, 2) ? &status : NULL));
		break;
	}
}
