/* SPDX-License-Identifier: MIT */
/* A module, as it was for the kernel: what it does is in its parameters. */
#include <linux/config.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/module.h>

#include <rtl.h>
#include <rtl_fifo.h>
#include <time.h>
#include <pthread.h>

MODULE_LICENSE("GPL");
MODULE_AUTHOR("the tests");
MODULE_DESCRIPTION("prints its parameters, and waits");
MODULE_PARM(periods, "i");
MODULE_PARM(text, "s");
MODULE_PARM(list, "1-4i");
MODULE_PARM(result, "i");
MODULE_PARM_DESC(periods, "how many periods its thread has; 0: no end");

static int periods = 5;
static char *text = "nothing";
int list[4] = { 1, 2, 3, 4 };
static int result;
static pthread_t thread;
/* Names of a module are its own, whatever the C library calls its functions. */
int wait = 7;

static int handler(unsigned int fifo)
{
	return (int)fifo;
}

static void *start_routine(void *argument)
{
	struct sched_param p;

	p.sched_priority = 1;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
	pthread_make_periodic_np(pthread_self(), gethrtime(), 1000000);
	for (int n = 0; periods == 0 || n < periods; n++) {
		pthread_wait_np();
		if (n == 2)
			rtl_printf("its thread has periods\n");
	}
	return argument;
}

static int __init module_begin(void)
{
	printk(KERN_INFO "periods %d, text %s, list %d %d %d %d\n", periods, text, list[0], list[1],
	       list[2], list[3]);
	if (result)
		return result;
	if (wait != 7)
		return -EFAULT;
	/* A handler, too, is a reason to stay. */
	if (periods < 0)
		return rtf_create(1, 100) || rtf_create_handler(1, handler);
	return pthread_create(&thread, NULL, start_routine, NULL);
}

static void __exit module_end(void)
{
	if (periods >= 0)
		pthread_delete_np(thread);
	printk("removed\n");
}

module_init(module_begin);
module_exit(module_end);
