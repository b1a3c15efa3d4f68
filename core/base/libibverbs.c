/* SPDX-License-Identifier: BSD-2-Clause */
/* base/libibverbs.c - finds libibverbs' functions behind ours, and its devices. */
#include "config.h"

#include "interposer.h"
#include "libibverbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void *find_in(void *library, const char *name, const char *version)
{
	return version ? dlvsym(library, name, version) : dlsym(library, name);
}

/* In a namespace of dlmopen() libibverbs may stand before us: then nothing is next. */
static void *find(const char *name, const char *version)
{
	void *function = find_in(RTLD_NEXT, name, version), *library;

	if (function)
		return function;
	library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (library) {
		function = find_in(library, name, version);
		dlclose(library);
	}
	return function;
}

void *polycm_real_verb(void **cache, const char *name, const char *version)
{
	void *function = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (function)
		return function;
	function = find(name, version);
	if (!function) {
		errno = ENOSYS;
		return NULL;
	}
	__atomic_store_n(cache, function, __ATOMIC_RELAXED);
	return function;
}

static struct ibv_device **real_list(int *ret_num)
{
	REAL_VERB(struct ibv_device **, "ibv_get_device_list", "IBVERBS_1.1", (int *));

	return real ? real(ret_num) : NULL;
}

static void real_free(struct ibv_device **devices)
{
	REAL_VERB(void, "ibv_free_device_list", "IBVERBS_1.1", (struct ibv_device **));

	if (real)
		real(devices);
}

static struct ibv_context *real_open(struct ibv_device *device)
{
	REAL_VERB(struct ibv_context *, "ibv_open_device", "IBVERBS_1.1", (struct ibv_device *));

	return real ? real(device) : NULL;
}

static const struct polycm_real_source libibverbs = { .list = real_list, .free = real_free };
const struct polycm_real_source *polycm_real_source = &libibverbs;

static pthread_mutex_t real_list_lock = PTHREAD_MUTEX_INITIALIZER;	/* the list's references, and: */
static struct polycm_real_list *last;				/* the newest, or NULL */
static unsigned int looks;					/* atomic */

static struct polycm_real_list *last_after(unsigned int num)
{
	struct polycm_real_list *list = NULL;

	pthread_mutex_lock(&real_list_lock);
	if (last && (int)(last->look - num) > 0) {
		list = last;
		list->refs++;
	}
	pthread_mutex_unlock(&real_list_lock);
	return list;
}

/* It is the last one from here on, unless a newer one is. */
static void keep(struct polycm_real_list *list)
{
	struct polycm_real_list *old = NULL;

	pthread_mutex_lock(&real_list_lock);
	if (!last || (int)(list->look - last->look) > 0) {
		old = last;
		last = list;
		list->refs++;
	}
	pthread_mutex_unlock(&real_list_lock);
	if (old)
		polycm_real_list_put(old);
}

unsigned int polycm_real_looks(void)
{
	return __atomic_load_n(&looks, __ATOMIC_ACQUIRE);
}

struct polycm_real_list *polycm_real_list(void)
{
	struct polycm_real_list *list = calloc(1, sizeof(*list));

	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	list->refs = 1;
	list->look = __atomic_add_fetch(&looks, 1, __ATOMIC_ACQ_REL);
	polycm_own_looks++;
	list->devices = polycm_real_source->list(&list->num);
	polycm_own_looks--;
	if (!list->devices) {
		int error = errno;

		free(list);
		errno = error;
		return NULL;
	}
	keep(list);
	return list;
}

struct polycm_real_list *polycm_real_list_after(unsigned int num)
{
	struct polycm_real_list *list = last_after(num);

	return list ? list : polycm_real_list();
}

void polycm_real_list_put(struct polycm_real_list *list)
{
	bool over;

	pthread_mutex_lock(&real_list_lock);
	over = !--list->refs;
	pthread_mutex_unlock(&real_list_lock);
	if (!over)
		return;
	polycm_real_source->free(list->devices);
	free(list);
}

static int open_in(const struct polycm_real_list *list, const char *name,
		   struct ibv_context **ret_verbs)
{
	for (struct ibv_device **entry = list->devices; *entry; entry++) {
		if (strcmp((*entry)->name, name))
			continue;
		errno = 0;
		*ret_verbs = real_open(*entry);
		if (*ret_verbs)
			return 0;
		/* 0 is no errno: what failed without one is a device that is gone. */
		return errno ? -errno : -ENODEV;
	}
	return -ENODEV;
}

static int open_real(const char *name, struct ibv_context **ret_verbs)
{
	struct polycm_real_list *list;
	int err = -ENODEV;

	pthread_mutex_lock(&real_list_lock);
	list = last;
	if (list)
		list->refs++;
	pthread_mutex_unlock(&real_list_lock);
	if (list) {
		err = open_in(list, name, ret_verbs);
		polycm_real_list_put(list);
		if (!err)
			return 0;
	}
	errno = 0;
	list = polycm_real_list();
	if (!list)
		return errno ? -errno : -ENODEV;
	err = open_in(list, name, ret_verbs);
	polycm_real_list_put(list);
	return err;
}

/* Not a place to be cancelled in, though libibverbs reads files: the list would stay. */
int polycm_real_open(const char *name, struct ibv_context **ret_verbs)
{
	int err, old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	err = open_real(name, ret_verbs);
	pthread_setcancelstate(old, NULL);
	return err;
}
