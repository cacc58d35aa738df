/* SPDX-License-Identifier: MIT */
/* FIFOs by number, in one program and in two. */
#include "check.h"

#include <rtai_fifos.h>
#include <sys/wait.h>

static void bytes_come_in_order(void)
{
	static char text[5000], got[5000];
	int room;

	for (int n = 0; n < 5000; n++)
		text[n] = (char)(n * 7 + n / 256);
	RETURNS(rtf_put(3, text, 1), -EINVAL);
	RETURNS(rtf_destroy(3), -EINVAL);
	RETURNS(rtf_create(3, 0), -EINVAL);
	RETURNS(rtf_create(3, 4000), 0);
	room = rtf_get_frbs(3);
	CHECK(room >= 4000 && room <= 5000);
	RETURNS(rtf_get(3, got, 10), 0);
	RETURNS(rtf_get_if(3, got, 10), 0);
	RETURNS(rtf_put(3, text, 100), 100);
	RETURNS(rtf_put_if(3, text, 5000), 0);
	RETURNS(rtf_get_avbs(3), 100);
	RETURNS(rtf_get_if(3, got, 101), 0);
	RETURNS(rtf_get_if(3, got, 60), 60);
	RETURNS(rtf_get(3, got + 60, 100), 40);
	CHECK(memcmp(got, text, 100) == 0);
	/* As many as there is room for. */
	RETURNS(rtf_put(3, text, 5000), room);
	RETURNS(rtf_put(3, text, 1), 0);
	RETURNS(rtf_get_frbs(3), 0);
	RETURNS(rtf_ovrwr_put(3, text, 50), 0);
	RETURNS(rtf_get(3, got, 5000), room);
	CHECK(memcmp(got, text + 50, (size_t)room - 50) == 0);
	CHECK(memcmp(got + room - 50, text, 50) == 0);
	RETURNS(rtf_ovrwr_put(3, text, 5000), 0);
	RETURNS(rtf_get(3, got, 5000), room);
	CHECK(memcmp(got, text + 5000 - room, (size_t)room) == 0);
	RETURNS(rtf_put(3, text, 1000), 1000);
	RETURNS(rtf_reset_lxrt(3), 0);
	RETURNS(rtf_get_avbs(3), 0);
	RETURNS(rtf_put(3, text, 0), 0);
	RETURNS(rtf_put(3, NULL, 1), -EINVAL);
	RETURNS(rtf_get(3, text, -1), -EINVAL);
	RETURNS(rtf_create(3, 1), 0);
	RETURNS(rtf_destroy(3), 1);
	RETURNS(rtf_destroy(3), 0);
	RETURNS(rtf_get_avbs(3), -EINVAL);
	RETURNS(rtf_create(MAX_FIFOS, 100), -ENODEV);
	RETURNS(rtf_put(MAX_FIFOS, text, 1), -ENODEV);
	RETURNS(rtf_destroy(1000), -ENODEV);
}

#define NUMBERS 20000

static void two_programs_share_one(void)
{
	unsigned got = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (rtf_create(7, 1000))
			_exit(1);
		for (unsigned n = 0; n < NUMBERS; n++)
			while (rtf_put_if(7, &n, sizeof(n)) == 0)
				sleep_ms(1);
		/* It is there until both have done with it. */
		while (rtf_get_avbs(7) > 0)
			sleep_ms(1);
		_exit(rtf_destroy(7));
	}
	UNTIL(rtf_get_avbs(7) >= 0);
	for (unsigned n = 0; n < NUMBERS; n++) {
		UNTIL(rtf_get_if(7, &got, sizeof(got)) > 0);
		CHECK(got == n);
	}
	CHECK(waitpid(pid, (int *)&got, 0) == pid && got == 0);
}

int main(void)
{
	bytes_come_in_order();
	two_programs_share_one();
	return 0;
}
