/*
 * A plugin of QEMU that logs calls of the guest kernel's functions. It executes nothing in the
 * guest, so the counted clock does not see it (docs/testing.md, "Looking from outside").
 *   symbols=FILE    /proc/kallsyms of that kernel, booted with nokaslr; addresses are of there
 *   calls=FILE      a function a line, up to 64, and what to print: rdi is a register, rdi+16 the
 *                   eight bytes there, rdi+3464s the string there; rsp+0 is the caller
 *   log=FILE        a line for each call: the machine's clock, ns; the function; the values
 *   from=NS to=NS   of that clock; not needed
 * In this order. Uses functions that QEMU 7.2 exports for its modules. Translated code for x86-64
 * has the guest's registers at %rbp, where all are stored whenever a block begins, as at a call.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tb;
uint64_t qemu_plugin_tb_vaddr(const struct tb *);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct tb *, void (*)(unsigned, void *), int, void *);
extern __thread void *current_cpu;
void icount_update(void *cpu);
int64_t qemu_clock_get_ns(int type);
int cpu_memory_rw_debug(void *cpu, uint64_t at, void *to, uint64_t length, bool write);

int qemu_plugin_version = 1;

#define KERNEL 0xffffffff80000000UL /* its text, and above */
static struct call {
	uint64_t at;
	char name[128], prints[128];
} calls[64];
static uint64_t count, slide = -1, first, from, to = -1;
static FILE *out;

static void print(const char *what, const uint64_t *values)
{
	static const char all[] = "rax rcx rdx rbx rsp rbp rsi rdi";
	char name[4] = { what[0], what[1], what[2] }, text[17] = "", *end = "";
	uint64_t value = values[(strstr(all, name) - all) / 4];

	if (what[3])
		value += strtoull(what + 3, &end, 0);
	if (*end) {
		cpu_memory_rw_debug(current_cpu, value, text, 16, false);
		fprintf(out, " %s", text);
		return;
	}
	if (what[3])
		cpu_memory_rw_debug(current_cpu, value, &value, 8, false);
	fprintf(out, " %lx", value < KERNEL ? value : value - slide);
}

/* The clock has counted the block that begins here. It refuses while a processor executes. */
__attribute__((used)) static void called(unsigned cpu, struct call *call, uint64_t *values)
{
	char prints[128], *word, *rest = strcpy(prints, call->prints);
	void *running = current_cpu;

	icount_update(running);
	current_cpu = NULL;
	uint64_t now = qemu_clock_get_ns(1);
	current_cpu = running;
	if (now < from || now > to)
		return;
	fprintf(out, "%lu %s", now, call->name);
	while ((word = strsep(&rest, " ")))
		if (*word)
			print(word, values);
	fputc('\n', out);
}

void entered(unsigned cpu, void *call);
__asm__("entered: mov %rbp, %rdx\n jmp called\n");

static void translated(uint64_t id, struct tb *block)
{
	uint64_t at = qemu_plugin_tb_vaddr(block);

	if (at >= KERNEL && slide == -1UL)
		slide = at - first; /* it begins there, wherever it has put itself */
	for (uint64_t i = 0; i < count; i++)
		if (at == calls[i].at + slide)
			qemu_plugin_register_vcpu_tb_exec_cb(block, entered, 0, &calls[i]);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	char line[512], name[128];
	FILE *file[3] = {};
	uint64_t at;

	for (int i = 0; i < argc; i++) {
		argv[i] = strchr(argv[i], '=') + 1;
		if (i < 3 && !(file[i] = fopen(argv[i], i < 2 ? "r" : "w")))
			return 1;
	}
	if (argc < 3)
		return 1;
	out = file[2];
	if (argc > 4)
		from = strtoull(argv[3], NULL, 0), to = strtoull(argv[4], NULL, 0);
	while (count < 64 && fscanf(file[1], "%127s%127[^\n]", calls[count].name,
				    calls[count].prints) > 0)
		count++;
	while (fgets(line, sizeof(line), file[0])) {
		if (sscanf(line, "%lx %*c %127s", &at, name) != 2)
			continue;
		if (!strcmp(name, "common_startup_64"))
			first = at;
		for (uint64_t i = 0; i < count; i++)
			if (!strcmp(calls[i].name, name))
				calls[i].at = at;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
