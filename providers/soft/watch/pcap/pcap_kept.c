/* SPDX-License-Identifier: BSD-2-Clause */
/* watch/pcap/pcap_kept.c - what is kept of QPs and connections, by kind and key. */
#include "config.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include "pcap_internal.h"

static struct sim_pcap_kept *kept[SIM_PCAP_KINDS];

void *sim_pcap_find(enum sim_pcap_kind kind, uint64_t key)
{
	struct sim_pcap_kept *found;

	HASH_FIND(hh, kept[kind], &key, sizeof(key), found);
	return found;
}

void *sim_pcap_keep(enum sim_pcap_kind kind, uint64_t key, size_t size)
{
	struct sim_pcap_kept *new = calloc(1, size);

	if (!new)
		goto err_alloc;
	new->key = key;
	HASH_ADD(hh, kept[kind], key, sizeof(new->key), new);
	if (new->hh.tbl)
		return new;
	free(new);
err_alloc:
	sim_pcap_no_memory();
	return NULL;
}

void sim_pcap_drop(enum sim_pcap_kind kind, void *what)
{
	struct sim_pcap_kept *gone = what;

	HASH_DEL(kept[kind], gone);
	free(gone);
}

unsigned int sim_pcap_num(enum sim_pcap_kind kind)
{
	return HASH_COUNT(kept[kind]);
}

void sim_pcap_forget(void)
{
	for (unsigned int kind = 0; kind < SIM_PCAP_KINDS; kind++)
		while (kept[kind])
			sim_pcap_drop(kind, kept[kind]);
}
