/* SPDX-License-Identifier: BSD-2-Clause */
/* verbs/real.c - finds libibverbs' functions behind ours, and its devices. */
#include "config.h"

#include "verbs/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

void *polycm_real_verb(void **cache, const char *name, const char *version)
{
	void *function = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (function)
		return function;
	function = version ? dlvsym(RTLD_NEXT, name, version) : dlsym(RTLD_NEXT, name);
	if (!function) {
		errno = ENOSYS;
		return NULL;
	}
	__atomic_store_n(cache, function, __ATOMIC_RELAXED);
	return function;
}

struct ibv_device **polycm_real_devices(int *ret_num)
{
	REAL_VERB(struct ibv_device **, "ibv_get_device_list", "IBVERBS_1.1", (int *));

	*ret_num = 0;
	return real ? real(ret_num) : NULL;
}

void polycm_real_devices_free(struct ibv_device **devices)
{
	REAL_VERB(void, "ibv_free_device_list", "IBVERBS_1.1", (struct ibv_device **));

	if (devices && real)
		real(devices);
}

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device **kept;

void polycm_real_devices_keep(struct ibv_device **devices)
{
	struct ibv_device **old;

	pthread_mutex_lock(&kept_lock);
	old = kept;
	kept = devices;
	pthread_mutex_unlock(&kept_lock);
	polycm_real_devices_free(old);
}

struct ibv_context *polycm_real_open_kept(const char *name)
{
	struct ibv_context *verbs = NULL;
	int old;

	/* Not a place to be cancelled in: the lock would stay. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	pthread_mutex_lock(&kept_lock);
	for (struct ibv_device **entry = kept; entry && *entry && !verbs; entry++)
		if (!strcmp((*entry)->name, name))
			verbs = ibv_open_device(*entry);
	pthread_mutex_unlock(&kept_lock);
	pthread_setcancelstate(old, NULL);
	return verbs;
}
