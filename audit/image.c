/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image.c - reads a loaded object's dynamic section.
 *
 * Nothing here calls the C library: an auditor has a copy of its own, which this one does
 * not load.
 */
#include "config.h"

#include "image.h"

#include <stddef.h>
#include <stdint.h>

bool audit_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

bool audit_begins(const char *text, const char *start)
{
	while (*start && *text == *start) {
		text++;
		start++;
	}
	return !*start;
}

bool audit_is_verbs(const char *soname)
{
	return audit_begins(soname, "libibverbs.so");
}

bool audit_is_rdma(const char *soname)
{
	return audit_is_verbs(soname) || audit_begins(soname, "librdmacm.so");
}

static ElfW(Dyn) *entry_of(const struct link_map *map, ElfW(Sxword) tag)
{
	ElfW(Dyn) *entry = map->l_ld;

	while (entry && entry->d_tag != DT_NULL) {
		if (entry->d_tag == tag)
			return entry;
		entry++;
	}
	return NULL;
}

static uintptr_t distance(uintptr_t a, uintptr_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * ld.so has made an address of the offset in the entry, unless the section is read-only.  The
 * object is where its dynamic section is.
 */
static bool is_address(const struct link_map *map, const ElfW(Dyn) *entry)
{
	uintptr_t here = (uintptr_t)map->l_ld, value = entry->d_un.d_ptr;

	return distance(value, here) < distance(value + map->l_addr, here);
}

static const void *table_of(const struct link_map *map, ElfW(Sxword) tag)
{
	const ElfW(Dyn) *entry = entry_of(map, tag);

	if (!entry)
		return NULL;
	return (const void *)(entry->d_un.d_ptr + (is_address(map, entry) ? 0 : map->l_addr));
}

const char *audit_file_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

const char *audit_soname(const struct link_map *map)
{
	const ElfW(Dyn) *soname = entry_of(map, DT_SONAME);
	const char *strings = table_of(map, DT_STRTAB);

	if (soname && strings)
		return strings + soname->d_un.d_val;
	return audit_file_name(map->l_name);
}

const char *audit_version(const struct link_map *map, unsigned int index)
{
	const ElfW(Half) *versions = table_of(map, DT_VERSYM);
	const char *next = table_of(map, DT_VERDEF), *strings = table_of(map, DT_STRTAB);
	const ElfW(Verdef) *node;
	const ElfW(Verdaux) *name;

	if (!versions || !next || !strings)
		return NULL;
	for (;; next += node->vd_next) {
		node = (const void *)next;
		if (node->vd_ndx == (versions[index] & 0x7fff) && !(node->vd_flags & VER_FLG_BASE)) {
			name = (const void *)(next + node->vd_aux);
			return strings + name->vda_name;
		}
		if (!node->vd_next)
			return NULL;
	}
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

static bool is_it(const struct link_map *map, const ElfW(Sym) *symbols, uint32_t index,
		  const char *name, const char *version)
{
	const char *strings = table_of(map, DT_STRTAB), *own;

	if (symbols[index].st_shndx == SHN_UNDEF ||
	    !audit_same(strings + symbols[index].st_name, name))
		return false;
	own = audit_version(map, index);
	return !own || !version || audit_same(own, version);
}

/* In the GNU hash table, which configure asks the linker for. */
ElfW(Addr) audit_find(const struct link_map *map, const char *name, const char *version)
{
	const uint32_t *header = table_of(map, DT_GNU_HASH), *buckets, *chains;
	const ElfW(Sym) *symbols = table_of(map, DT_SYMTAB);
	uint32_t hash = hash_of(name), first, index;

	if (!header || !symbols || !header[0])
		return 0;
	first = header[1];
	buckets = header + 4 + header[2] * (sizeof(ElfW(Addr)) / sizeof(*header));
	chains = buckets + header[0];
	index = buckets[hash % header[0]];
	if (index < first)
		return 0;
	do {
		if (!((chains[index - first] ^ hash) >> 1) &&
		    is_it(map, symbols, index, name, version))
			return map->l_addr + symbols[index].st_value;
	} while (!(chains[index++ - first] & 1));
	return 0;
}

/* ld.so has written into the section, so it is writable. */
static bool is_writable(const struct link_map *map)
{
	const ElfW(Dyn) *strings = entry_of(map, DT_STRTAB);

	return map->l_addr && strings && is_address(map, strings);
}

void audit_need(struct link_map *map, const char *path)
{
	const char *strings = table_of(map, DT_STRTAB), *name;
	ElfW(Dyn) *entry, *rdma = NULL, *verbs = NULL, *libc = NULL, *spare;

	if (!is_writable(map))
		return;
	for (entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag != DT_NEEDED)
			continue;
		name = strings + entry->d_un.d_val;
		if (!rdma && audit_is_rdma(name))
			rdma = entry;
		if (audit_is_verbs(name))
			verbs = entry;
		else if (audit_same(name, "libc.so.6"))
			libc = entry;
	}
	spare = verbs ? verbs : libc;
	if (!spare || (!rdma && !audit_is_verbs(audit_soname(map))))
		return;
	if (rdma && rdma < spare) {
		spare->d_un.d_val = rdma->d_un.d_val;
		spare = rdma;
	}
	/* An offset from the table of strings to anywhere. */
	spare->d_un.d_val = (uintptr_t)path - (uintptr_t)strings;
}
