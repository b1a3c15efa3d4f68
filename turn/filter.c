/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/filter.c - see filter.h.  Source: seccomp(2). */
#include "config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "filter.h"
#include "page.h"
#include "raw.h"
#include "trap.h"

/* Since Linux 4.17; older ones take the address for a wish. */
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct turn_page *const page = (struct turn_page *)TURN_PAGE;

static size_t code_size(void)
{
	return (size_t)(turn_raw_end - turn_raw_begin);
}

static void fill(void)
{
	static const char call[] = "\x0f\x05\xcc";	/* syscall; int3 */
	const struct turn_sigaction action = turn_trap_action(turn_raw_at.pass);

	_Static_assert(sizeof(action) == sizeof(page->action), "one struct in two places");
	memcpy(page->call, call, sizeof(call) - 1);
	memcpy(page->action, &action, sizeof(action));
	memcpy(page->code, turn_raw_begin, code_size());
}

static int make_page(void)
{
	long at;

	if (code_size() > sizeof(page->code))
		return -E2BIG;
	at = TURN_RAW(SYS_mmap, page, TURN_PAGE_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (long)page) {
		if ((unsigned long)at <= -4096ul)
			TURN_RAW(SYS_munmap, at, TURN_PAGE_SIZE);
		return -EEXIST;
	}
	turn_raw_move(page->code);
	fill();
	/* Not from the page before it can be executed. */
	return (int)turn_raw_here(SYS_mprotect, (long)page, (long)TURN_PAGE_SIZE,
				  PROT_READ | PROT_EXEC, 0, 0, 0);
}

/* Before the page can be executed, no handler may make a call from there: the launcher may ask. */
static int make_page_undisturbed(void)
{
	const uint64_t all = UINT64_MAX;
	uint64_t mask;
	int err;

	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, TURN_SIGSET_SIZE);
	err = make_page();
	if (err)
		turn_raw_move((char *)(uintptr_t)turn_raw_begin);
	TURN_RAW(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, TURN_SIGSET_SIZE);
	return err;
}

int turn_filter_prepare(bool is_inherited)
{
	if (!is_inherited)
		return make_page_undisturbed();
	/* As its member before exec had it. */
	if (memcmp(page->code, turn_raw_begin, code_size()) != 0)
		return -ENOEXEC;
	turn_raw_move(page->code);
	return 0;
}

#define LOAD_AT(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define LOAD(member) LOAD_AT(offsetof(struct seccomp_data, member))
#define LOAD_UPPER(member) LOAD_AT(offsetof(struct seccomp_data, member) + 4)
#define IF(test, value, then, other)                                                               \
	BPF_JUMP(BPF_JMP | BPF_K | (test), (uint32_t)(value), (then), (other))

/* Let through, besides: what makes the page in a new program, which has none yet. */
static const struct sock_filter filter[] = {
	LOAD(nr),
	IF(BPF_JEQ, SYS_mmap, 0, 4),
	LOAD_UPPER(args[0]),
	IF(BPF_JEQ, TURN_PAGE >> 32, 0, 2),
	LOAD(args[0]),
	IF(BPF_JEQ, TURN_PAGE, 6, 0),
	LOAD_UPPER(instruction_pointer),
	IF(BPF_JEQ, TURN_PAGE >> 32, 0, 3),
	LOAD(instruction_pointer),
	IF(BPF_JGE, TURN_PAGE, 0, 1),
	IF(BPF_JGE, TURN_PAGE + TURN_PAGE_SIZE, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

/* Processors whose speculation is a risk under filters are not slowed down, as this is no sandbox. */
static long install(void)
{
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = (struct sock_filter *)(uintptr_t)filter,
	};
	long err = TURN_RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			    &program);

	if (err == -EINVAL)	/* before Linux 4.17 */
		err = TURN_RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	return err;
}

int turn_filter_install(void)
{
	long err = install();

	/* Who is not privileged promises never to be. */
	if (err == -EACCES) {
		err = TURN_RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
		if (!err)
			err = install();
	}
	return (int)err;
}
