/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_unwind.c - the calls that led a thread to where it waits, by elfutils' libdw, which is loaded
 * when it is needed.  What belongs to libpolycm-turn is left out, and what a function of libpolycm
 * calls, and how the C library starts a thread.  It runs in a process of its own: it may crash over
 * what a program has in its memory.
 */
#include "config.h"

#include "system.h"

#ifdef HAVE_LIBDW

#include <ctype.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WALKED 256u
#define MOST_SHOWN 10u

static struct {
	typeof(dwfl_begin) *begin;
	typeof(dwfl_end) *end;
	typeof(dwfl_linux_proc_report) *report;
	typeof(dwfl_report_end) *report_end;
	typeof(dwfl_linux_proc_find_elf) *find_elf;
	typeof(dwfl_standard_find_debuginfo) *find_debuginfo;
	typeof(dwfl_attach_state) *attach;
	typeof(dwfl_thread_state_registers) *set_registers;
	typeof(dwfl_getthread_frames) *get_frames;
	typeof(dwfl_frame_pc) *frame_pc;
	typeof(dwfl_addrmodule) *module_at;
	typeof(dwfl_module_info) *module_info;
	typeof(dwfl_module_addrinfo) *function_at;
	typeof(dwfl_module_getsrc) *line_at;
	typeof(dwfl_lineinfo) *line_info;
} lib;

static bool load(void)
{
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{ "dwfl_begin", &lib.begin },
		{ "dwfl_end", &lib.end },
		{ "dwfl_linux_proc_report", &lib.report },
		{ "dwfl_report_end", &lib.report_end },
		{ "dwfl_linux_proc_find_elf", &lib.find_elf },
		{ "dwfl_standard_find_debuginfo", &lib.find_debuginfo },
		{ "dwfl_attach_state", &lib.attach },
		{ "dwfl_thread_state_registers", &lib.set_registers },
		{ "dwfl_getthread_frames", &lib.get_frames },
		{ "dwfl_frame_pc", &lib.frame_pc },
		{ "dwfl_addrmodule", &lib.module_at },
		{ "dwfl_module_info", &lib.module_info },
		{ "dwfl_module_addrinfo", &lib.function_at },
		{ "dwfl_module_getsrc", &lib.line_at },
		{ "dwfl_lineinfo", &lib.line_info },
	};
	void *loaded = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; loaded && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *function = dlsym(loaded, wanted[i].name);

		if (!function)
			return false;
		memcpy(wanted[i].function, &function, sizeof(function));
	}
	return loaded;
}

/* ------------------------------------------------------------------------
 * What libdw asks for: registers and memory are of a copy.
 */

/* Of the process whose thread it is: the one that is looked at. */
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return (*(const struct system_stack **)arg)->pid;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *arg)
{
	const struct system_stack *stack = *(const struct system_stack **)arg;
	const uint64_t at = address - stack->begin;

	(void)dwfl;
	if (address < stack->begin || at >= stack->len || stack->len - at < sizeof(*ret))
		return false;
	memcpy(ret, stack->bytes + at, sizeof(*ret));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct system_stack *stack = *(const struct system_stack **)arg;
	Dwarf_Word registers[SYSTEM_REGISTERS];

	for (size_t i = 0; i < SYSTEM_REGISTERS; i++)
		registers[i] = stack->registers[i];
	return lib.set_registers(thread, 0, SYSTEM_REGISTERS, registers);
}

static const Dwfl_Thread_Callbacks threads = {
	.next_thread = next_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* ------------------------------------------------------------------------
 * Frames.
 */

struct frame {
	const char *function;	/* NULL: it has no name */
	const char *file;	/* of the program or library */
	const char *source;	/* or NULL */
	int line;
	uint64_t offset;	/* in the file's memory */
	bool is_c;		/* the C library's */
};

struct frames {
	Dwfl *dwfl;
	struct frame all[MOST_WALKED];
	size_t num;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with)
{
	return text && !strncmp(text, with, strlen(with));
}

static bool is_c_library(const char *file)
{
	return begins(file, "libc.so.") || begins(file, "libc-2.") || begins(file, "libpthread") ||
	       begins(file, "ld-linux");
}

static void find_source(struct frame *frame, Dwfl_Module *module, Dwarf_Addr pc)
{
	Dwfl_Line *line = lib.line_at(module, pc);
	const char *source = line ? lib.line_info(line, NULL, &frame->line, NULL, NULL, NULL) : NULL;

	frame->source = source ? base_of(source) : NULL;
}

static int add_frame(Dwfl_Frame *state, void *arg)
{
	struct frames *frames = arg;
	struct frame frame = { .function = NULL };
	Dwfl_Module *module;
	Dwarf_Addr pc, begin = 0;
	GElf_Off offset;
	GElf_Sym symbol;
	bool is_first;

	if (!lib.frame_pc(state, &pc, &is_first))
		return DWARF_CB_ABORT;
	/* The call, not where it returns to, which may be behind the function. */
	pc -= !is_first;
	module = lib.module_at(frames->dwfl, pc);
	frame.file = module ? lib.module_info(module, NULL, &begin, NULL, NULL, NULL, NULL, NULL) : NULL;
	if (!frame.file)
		return DWARF_CB_ABORT;
	frame.file = base_of(frame.file);
	if (begins(frame.file, "libpolycm-turn"))
		return DWARF_CB_OK;
	frame.function = lib.function_at(module, pc, &offset, &symbol, NULL, NULL, NULL);
	frame.offset = pc - begin;
	frame.is_c = is_c_library(frame.file);
	find_source(&frame, module, pc);
	frames->all[frames->num++] = frame;
	return frames->num == MOST_WALKED ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* Without what starts a program or a thread, if something is left. */
static void cut_start(struct frames *frames)
{
	size_t num = frames->num;

	for (size_t i = 0; i < num; i++)
		if (begins(frames->all[i].function, "__libc_start_main"))
			num = i;
	while (num > 1 && frames->all[num - 1].is_c)
		num--;
	frames->num = num ? num : frames->num;
}

/* Begin with the function of libpolycm that the program called, if it waits in one. */
static void cut_inside(struct frames *frames)
{
	size_t first = 0;

	for (size_t i = 0; i < frames->num; i++) {
		if (begins(frames->all[i].file, "libpolycm") || begins(frames->all[i].file, "provider-"))
			first = i;
		else if (!frames->all[i].is_c)
			break;
	}
	frames->num -= first;
	memmove(frames->all, frames->all + first, frames->num * sizeof(*frames->all));
}

/* A part of another function of the C library, which says what it is. */
static bool is_inner_part(const struct frames *frames, size_t i)
{
	return !frames->all[i].function && frames->all[i].is_c && i + 1 < frames->num &&
	       frames->all[i + 1].is_c;
}

/* What a program has for a name may be anything. */
static void print_name(FILE *to, const char *name)
{
	for (size_t i = 0; name[i] && i < 100; i++)
		fputc(isprint((unsigned char)name[i]) ? name[i] : '?', to);
}

/* Without its version, and what the compiler did to it: "lock.constprop.0", "lock@GLIBC_2.2.5". */
static void print_function(FILE *to, const char *name)
{
	char *plain = tool_printf("%.1s%.*s", name, *name ? (int)strcspn(name + 1, "@.") : 0, name + 1);

	print_name(to, plain);
	free(plain);
}

static void print_frame(FILE *to, const struct frame *frame)
{
	if (frame->function) {
		print_function(to, frame->function);
		fputs(" (", to);
		print_name(to, frame->source ? frame->source : frame->file);
		if (frame->source)
			fprintf(to, ":%d", frame->line);
		fputs(")\n", to);
	} else {
		print_name(to, frame->file);
		fprintf(to, "+0x%llx\n", (unsigned long long)frame->offset);
	}
}

static void print_frames(FILE *to, const struct frames *frames)
{
	size_t shown = 0;

	for (size_t i = 0; i < frames->num; i++) {
		if (is_inner_part(frames, i))
			continue;
		if (shown++ == MOST_SHOWN) {
			fputs("...\n", to);
			return;
		}
		print_frame(to, &frames->all[i]);
	}
}

/* ------------------------------------------------------------------------
 * Processes.
 */

/* NULL: it cannot be looked at. */
static Dwfl *open_process(pid_t pid, const struct system_stack **stack)
{
	static Dwfl_Callbacks callbacks;
	Dwfl *dwfl;

	callbacks.find_elf = lib.find_elf;
	callbacks.find_debuginfo = lib.find_debuginfo;
	dwfl = lib.begin(&callbacks);
	if (!dwfl)
		return NULL;
	if (!lib.report(dwfl, pid) && !lib.report_end(dwfl, NULL, NULL) &&
	    lib.attach(dwfl, NULL, pid, &threads, stack))
		return dwfl;
	lib.end(dwfl);
	return NULL;
}

void system_unwind(const struct system_stack *stacks, size_t num, FILE *to)
{
	static const struct system_stack *current;
	static struct frames frames;
	bool *is_done = calloc(num, sizeof(*is_done));

	/* No server is asked for debugging information. */
	unsetenv("DEBUGINFOD_URLS");
	if (!is_done || !load())
		return;
	for (size_t first = 0; first < num; first++) {
		if (is_done[first] || !stacks[first].len)
			continue;
		frames.dwfl = open_process(stacks[first].pid, &current);
		for (size_t i = first; frames.dwfl && i < num; i++) {
			if (stacks[i].pid != stacks[first].pid)
				continue;
			is_done[i] = true;
			current = &stacks[i];
			frames.num = 0;
			lib.get_frames(frames.dwfl, current->pid, add_frame, &frames);
			cut_start(&frames);
			cut_inside(&frames);
			fprintf(to, "%zu\n", i);
			print_frames(to, &frames);
			fputc('\0', to);
			fflush(to);
		}
		if (frames.dwfl)
			lib.end(frames.dwfl);
	}
	free(is_done);
}

#else

void system_unwind(const struct system_stack *stacks, size_t num, FILE *to)
{
	(void)stacks;
	(void)num;
	(void)to;
}

#endif
