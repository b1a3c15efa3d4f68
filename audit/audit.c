/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit.c - what the dynamic linker asks: gives programs that open libibverbs or librdmacm
 * while they run libpolycm's calls.
 *
 * A preloaded library comes first where symbols of the whole program are looked up, but not in
 * dlsym() of a library, with RTLD_DEEPBIND, or in a namespace of dlmopen().  The libraries are
 * opened as asked for.  Each symbol that is then found in them, and that libpolycm exports under
 * the same name and version, is bound to libpolycm's.  libpolycm itself and libibverbs' drivers
 * are left alone.
 *
 * ld.so holds its lock in la_objopen() and la_objclose(), not in la_symbind64().
 */
#include "config.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/export.h"
#include "image.h"

#if __ELF_NATIVE_CLASS == 64
#define la_symbind la_symbind64
#else
#define la_symbind la_symbind32
#endif

/* As many as glibc has. */
#define NUM_NAMESPACES 16
#define NUM_LIBRARIES 64

/* libpolycm, or one of those that it stands for, in a namespace. */
struct library {
	const struct link_map *map;
	Lmid_t space;
	bool is_ours;
};

/*
 * The cookie of an object of the program points into `programs', at its namespace; that of a
 * library to the library.  The one of BEHIND says the object's map.  With several auditors,
 * glibc 2.36 hands over cookies of others: nothing is read through one that is none of these.
 */
static const char programs[NUM_NAMESPACES];
static struct library libraries[NUM_LIBRARIES];
static const struct link_map *ours[NUM_NAMESPACES];	/* atomic */

static const struct link_map *last_at_start;
static bool started;

static struct library *library_of(uintptr_t cookie)
{
	uintptr_t offset = cookie - (uintptr_t)libraries;

	return offset < sizeof(libraries) ? &libraries[offset / sizeof(libraries[0])] : NULL;
}

static struct library *add(const struct link_map *map, Lmid_t space, bool is_ours)
{
	for (size_t i = 0; i < NUM_LIBRARIES; i++) {
		if (libraries[i].map)
			continue;
		libraries[i].map = map;
		libraries[i].space = space;
		libraries[i].is_ours = is_ours;
		return &libraries[i];
	}
	return NULL;
}

/* In the folder where libibverbs looks for them, or with its version of them in the name. */
static bool is_driver(const char *path)
{
	static const char folder[] = "/libibverbs/";
	const size_t len = sizeof(folder) - 1;
	const char *name = audit_file_name(path);

	if ((size_t)(name - path) >= len && audit_begins(name - len, folder))
		return true;
	for (; *name; name++)
		if (audit_begins(name, "-rdmav"))
			return true;
	return false;
}

POLYCM_EXPORT unsigned int la_version(unsigned int version)
{
	/* Before 2 (glibc 2.35) each call of the program would take a detour. */
	return version < 2 ? 0 : 2;
}

/*
 * What RTLD_DEEPBIND or a namespace lets bind to the real libraries without a question (the
 * address of a function) finds libpolycm first where the object needs it first.
 */
static void put_ours_first(struct link_map *map)
{
	if (started && ours[LM_ID_BASE])
		audit_need(map, ours[LM_ID_BASE]->l_name);
}

static unsigned int open_ours(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	const struct library *library = add(map, space, true);

	if (library) {
		*cookie = (uintptr_t)library;
		__atomic_store_n(&ours[space], map, __ATOMIC_RELEASE);
	}
	/* Its own calls of ibv_* are its own, wherever it stands. */
	return LA_FLG_BINDFROM;
}

static unsigned int open_real(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	const struct library *library = add(map, space, false);

	if (!library)
		return 0;
	*cookie = (uintptr_t)library;
	/* Nothing else may bring libpolycm to the namespace. */
	if (space != LM_ID_BASE && !ours[space])
		put_ours_first(map);
	return LA_FLG_BINDFROM | LA_FLG_BINDTO;
}

static unsigned int open_program(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	*cookie = (uintptr_t)&programs[space];
	put_ours_first(map);
	if (!started && ours[space]) {
		/* BEHIND libpolycm from the start. */
		*cookie = (uintptr_t)map;
		last_at_start = map;
	}
	return LA_FLG_BINDFROM;
}

POLYCM_EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	const char *soname = audit_soname(map);

	*cookie = 0;
	if (space < 0 || space >= NUM_NAMESPACES)
		return 0;
	if (audit_begins(soname, "libpolycm.so"))
		return open_ours(map, space, cookie);
	if (audit_is_rdma(soname))
		return open_real(map, space, cookie);
	return is_driver(map->l_name) ? 0 : open_program(map, space, cookie);
}

POLYCM_EXPORT unsigned int la_objclose(uintptr_t *cookie)
{
	struct library *library = library_of(*cookie);

	if (!library)
		return 0;
	if (library->is_ours)
		__atomic_store_n(&ours[library->space], NULL, __ATOMIC_RELEASE);
	library->map = NULL;
	return 0;
}

POLYCM_EXPORT void la_activity(uintptr_t *cookie, unsigned int flag)
{
	/* Of the program's namespace, which begins with the program: another auditor has one, too. */
	if (flag == LA_ACT_CONSISTENT && *cookie == (uintptr_t)&programs[LM_ID_BASE])
		started = true;
}

/* Names for linkers, which only packages for development have, are those of the libraries. */
POLYCM_EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	static char verbs[] = "libibverbs.so.1", rdmacm[] = "librdmacm.so.1";

	(void)cookie;
	if (flag == LA_SER_ORIG && audit_same(name, "libibverbs.so"))
		return verbs;
	if (flag == LA_SER_ORIG && audit_same(name, "librdmacm.so"))
		return rdmacm;
	return (char *)(uintptr_t)name;
}

/* NULL: the cookie is of another object.  Those that are there from the start stay. */
static const struct link_map *behind(uintptr_t cookie)
{
	const struct link_map *map = __atomic_load_n(&ours[LM_ID_BASE], __ATOMIC_ACQUIRE);

	while (map && (uintptr_t)map != cookie)
		map = map == last_at_start ? NULL : map->l_next;
	return map;
}

/*
 * libpolycm of the namespace of the object that uses the function, or NULL.
 *
 * libpolycm asks dlsym() for the function behind its own.  A library of the program behind
 * libpolycm that has the function, too, does so as well, and libpolycm finds it there.
 */
static const struct link_map *ours_for(uintptr_t cookie, unsigned int flags, const char *name)
{
	const struct library *library = library_of(cookie);
	uintptr_t space = cookie - (uintptr_t)programs;
	const struct link_map *wrapper;

	if (library) {
		if (flags & LA_SYMB_DLSYM)
			return NULL;
		space = (uintptr_t)library->space;
	} else if (space >= sizeof(programs)) {
		wrapper = behind(cookie);
		if (!wrapper || audit_find(wrapper, name, NULL))
			return NULL;
		space = LM_ID_BASE;
	}
	return __atomic_load_n(&ours[space], __ATOMIC_ACQUIRE);
}

POLYCM_EXPORT uintptr_t la_symbind(ElfW(Sym) *symbol, unsigned int index, uintptr_t *from,
				   uintptr_t *to, unsigned int *flags, const char *name)
{
	const struct library *library = library_of(*to);
	const struct link_map *map = NULL;
	ElfW(Addr) found = 0;

	if (library && !library->is_ours)
		map = ours_for(*from, *flags, name);
	*flags |= LA_SYMB_NOPLTENTER | LA_SYMB_NOPLTEXIT;
	if (map)
		found = audit_find(map, name, audit_version(library->map, index));
	return found ? found : symbol->st_value;
}
