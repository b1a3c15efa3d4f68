/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/signals.c - see signals.h. */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "signals.h"

#define MAX_OBJECTS 1024

struct ofi_signals {
	struct sigaction actions[_NSIG];
	bool known[_NSIG];
	const void *objects[MAX_OBJECTS];	/* where their program headers are */
	unsigned int num_objects;
};

static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct ofi_signals *signals = arg;

	(void)size;
	if (signals->num_objects == MAX_OBJECTS)
		return 1;
	signals->objects[signals->num_objects++] = info->dlpi_phdr;
	return 0;
}

struct ofi_signals *ofi_signals_save(void)
{
	struct ofi_signals *signals = calloc(1, sizeof(*signals));

	if (!signals)
		return NULL;
	(void)dl_iterate_phdr(add_object, signals);
	for (int i = 1; i < _NSIG; i++)
		signals->known[i] = !sigaction(i, NULL, &signals->actions[i]);
	return signals;
}

struct search {
	const struct ofi_signals *signals;
	ElfW(Addr) address;
	bool found;			/* in an object that is not among those of signals */
};

static bool was_loaded(const struct ofi_signals *signals, const void *headers)
{
	for (unsigned int i = 0; i < signals->num_objects; i++)
		if (signals->objects[i] == headers)
			return true;
	return false;
}

static int look_into(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_LOAD ||
		    search->address - (info->dlpi_addr + part->p_vaddr) >= part->p_memsz)
			continue;
		search->found = !was_loaded(search->signals, info->dlpi_phdr);
		return 1;
	}
	return 0;
}

static bool is_from_new_object(const struct ofi_signals *signals, const struct sigaction *now)
{
	struct search search = { .signals = signals };

	search.address = now->sa_flags & SA_SIGINFO ? (ElfW(Addr))now->sa_sigaction
						     : (ElfW(Addr))now->sa_handler;
	(void)dl_iterate_phdr(look_into, &search);
	return search.found;
}

void ofi_signals_restore(struct ofi_signals *signals)
{
	struct sigaction now;

	if (!signals)
		return;
	for (int i = 1; i < _NSIG; i++)
		if (signals->known[i] && !sigaction(i, NULL, &now) &&
		    is_from_new_object(signals, &now))
			(void)sigaction(i, &signals->actions[i], NULL);
	free(signals);
}
