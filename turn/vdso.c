/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/vdso.c - see vdso.h.  Source: vdso(7), getauxval(3), elf(5). */
#include "config.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "hand.h"
#include "order.h"
#include "raw.h"
#include "vdso.h"

#define PAGE 4096ul
#define MOST_PAGES 16		/* of the mapping; 2 on Linux 6.12 */

static const struct {
	const char *name;
	uint32_t number;
} functions[] = {
	{ "__vdso_clock_gettime", SYS_clock_gettime },
	{ "__vdso_gettimeofday", SYS_gettimeofday },
	{ "__vdso_time", SYS_time },
	{ "__vdso_getcpu", SYS_getcpu },
	{ "__vdso_clock_getres", SYS_clock_getres },
	{ "__vdso_getrandom", 0 },
};

struct image {
	char *base;
	size_t size;
	const ElfW(Sym) *symbols;
	const char *names;
	uint32_t num_symbols;
};

static struct image image_at(char *base)
{
	const ElfW(Ehdr) *header = (const void *)base;
	const ElfW(Phdr) *all = (const void *)(base + header->e_phoff);
	struct image image = { .base = base };

	for (size_t i = 0; i < header->e_phnum; i++) {
		if (all[i].p_type == PT_LOAD && all[i].p_vaddr + all[i].p_memsz > image.size)
			image.size = all[i].p_vaddr + all[i].p_memsz;
		if (all[i].p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (const void *)(base + all[i].p_offset); d->d_tag; d++) {
			const void *at = base + d->d_un.d_ptr;

			if (d->d_tag == DT_SYMTAB)
				image.symbols = at;
			else if (d->d_tag == DT_STRTAB)
				image.names = at;
			else if (d->d_tag == DT_HASH)
				image.num_symbols = ((const uint32_t *)at)[1];
		}
	}
	return image;
}

/*
 * mov $NUMBER, %eax; syscall; ret.  A function without a number says that it cannot: programs call
 * the kernel then.
 */
static void replace(char *function, uint32_t number)
{
	static const char call[] = "\x0f\x05\xc3", fail[] = "\xb8\xda\xff\xff\xff\xc3";	/* -ENOSYS */

	if (!number) {
		memcpy(function, fail, sizeof(fail) - 1);
		return;
	}
	function[0] = (char)0xb8;
	memcpy(function + 1, &number, sizeof(number));
	memcpy(function + 5, call, sizeof(call) - 1);
}

/*
 * The mapping may have more pages than the image.  Linux protects the whole of it only (EINVAL), but
 * for some older ones.
 */
static long make_writable(char *base, size_t *size)
{
	long err;

	do {
		err = TURN_RAW(SYS_mprotect, base, *size, PROT_READ | PROT_WRITE | PROT_EXEC);
		if (err == -EINVAL)
			*size += PAGE;
	} while (err == -EINVAL && *size <= MOST_PAGES * PAGE);
	return err;
}

int turn_vdso_replace(void)
{
	char *base = (char *)getauxval(AT_SYSINFO_EHDR);
	struct image image;
	size_t size;
	long err;

	if (!base)
		return 0;
	image = image_at(base);
	if (!image.symbols || !image.names || !image.num_symbols)
		return -ENOEXEC;
	size = (image.size + PAGE - 1) & ~(PAGE - 1);
	err = make_writable(base, &size);
	if (err)
		return (int)err;
	for (uint32_t i = 0; i < image.num_symbols; i++)
		for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++)
			if (!strcmp(image.names + image.symbols[i].st_name, functions[k].name))
				replace(base + image.symbols[i].st_value, functions[k].number);
	return (int)TURN_RAW(SYS_mprotect, base, size, PROT_READ | PROT_EXEC);
}

void turn_vdso_set_random(void)
{
	uint64_t *bytes = (uint64_t *)getauxval(AT_RANDOM);
	uint64_t *state = &turn_segment->members[turn_member].random;

	/* The first are the C library's already, which checks its stack with them. */
	for (unsigned int i = 0; bytes && i < 2; i++) {
		uint64_t value = turn_order_draw(state);

		memcpy(bytes + i, &value, sizeof(value));
	}
}
