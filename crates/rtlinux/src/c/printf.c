/* SPDX-License-Identifier: MIT */
/*
 * Output of programs: C alone can take a variable number of arguments, and be cancelled in write.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is longer is cut. */
#define LONGEST 512

int rtl_printf(const char *format, ...);
int printk(const char *format, ...);

static int print(const char *format, va_list arguments)
{
	char text[LONGEST];
	int length, before = errno;
	size_t written;

	if (!format)
		return -EINVAL;
	length = vsnprintf(text, sizeof(text), format, arguments);
	if (length > 0) {
		written = (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
		/* What cannot be written is lost, as in RT-Linux. */
		if (write(STDERR_FILENO, text, written) < 0)
			errno = before;
	}
	return length;
}

int rtl_printf(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print(format, arguments);
	va_end(arguments);
	return length;
}

int printk(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print(format, arguments);
	va_end(arguments);
	return length;
}
