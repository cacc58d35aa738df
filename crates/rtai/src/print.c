/* SPDX-License-Identifier: MIT */
/* Output of programs: C alone can take a variable number of arguments. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* As in RTAI: what is longer is cut. */
#define LONGEST 256

/* print.rs */
void punctual__rtai_print(const char *text, size_t length);

static int print(const char *format, va_list arguments)
{
	char text[LONGEST];
	int length = vsnprintf(text, sizeof(text), format, arguments);

	if (length > 0)
		punctual__rtai_print(text, (size_t)length < sizeof(text) ? (size_t)length
									 : sizeof(text) - 1);
	return length;
}

int rt_printk(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print(format, arguments);
	va_end(arguments);
	return length;
}

int rtai_print_to_screen(const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = print(format, arguments);
	va_end(arguments);
	return length;
}
