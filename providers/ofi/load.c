/* SPDX-License-Identifier: BSD-2-Clause */
/* ofi/load.c - see load.h. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "providers/soft/engine/engine.h"
#include "providers/soft/nic/refuse.h"
#include "carry.h"
#include "held_signals.h"
#include "load.h"
#include "self.h"
#include "signals.h"

#define DEFAULT_LIST "efa,cxi,opx,psm3"
#define FILE_NAME "ofi-carrier.so"
#define POLLS_LATELY SIM_US(200)	/* so long after a poll another one is expected */
#define POLLED_MS 1		/* what nobody waits for is looked at so often */
#define VAIN_MAX 16u		/* wake-ups in a row for nothing */
#define VAIN_LONG 512u		/* and then so often after VAIN_US, later after POLLED_MS */
#define VAIN_US 50
#define INSIDE_MS 2000		/* longer than opening takes */

/* The thread's own: it frees it when it ends. */
struct loader {
	int wake;
	bool stop;
	char providers[OFI_MAX_CARRIERS][OFI_NAME];
	unsigned int num_providers;
	union sim_sockaddr source;
};

static char list[OFI_MAX_CARRIERS][OFI_NAME];
static unsigned int num_listed;
static bool asked;			/* the user has set it */
static char file[PATH_MAX];
static struct loader *loader;		/* NULL: none, or not now */
static bool tried;
static bool watches_exit;
static _Atomic uint64_t polled_at;	/* by the program, or 0 */
static atomic_bool resting;
static atomic_bool inside;		/* of libfabric, without the lock */

/* ------------------------------------------------------------------------
 * The setting.
 */

/* In the folder of this plugin. */
static bool find_file(void)
{
	static const char in_this_plugin;
	Dl_info found;
	char *slash;

	if (!dladdr(&in_this_plugin, &found) || !found.dli_fname || !realpath(found.dli_fname, file))
		return false;
	slash = strrchr(file, '/');
	if (!slash || (size_t)(slash + 1 - file) + sizeof(FILE_NAME) > sizeof(file))
		return false;
	strcpy(slash + 1, FILE_NAME);
	return !access(file, R_OK);
}

/* Looking costs a third of a second: without such a card it is not done, unless a user asks. */
static bool has_card(const char *provider)
{
	static const char *const paths[][2] = {
		{ "efa", "/sys/class/infiniband/*" },
		{ "cxi", "/sys/class/cxi/*" },
		{ "opx", "/sys/class/infiniband/hfi*" },
		{ "psm3", "/sys/class/infiniband/*" },
	};
	bool has = true;
	glob_t found;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(paths[i][0], provider))
			continue;
		has = !glob(paths[i][1], GLOB_NOSORT, NULL, &found);
		if (has)
			globfree(&found);
	}
	return has;
}

static int bad(const char *value, const char *why)
{
	sim_core->log(POLYCM_LOG_ERROR, NULL, "POLYCM_OFI_FABRIC=%s: %s", value, why);
	return -EINVAL;
}

static int add(const char *name)
{
	if (strlen(name) >= OFI_NAME)
		return bad(name, "no name of a provider of libfabric");
	/* It would find the devices of this host, which may be ours. */
	if (strstr(name, "verbs") || strstr(name, "hook"))
		return bad(name, "polycm does not run over that provider");
	if (num_listed == OFI_MAX_CARRIERS)
		return bad(name, "more than 4 providers");
	if (asked || has_card(name))
		strcpy(list[num_listed++], name);
	return 0;
}

bool ofi_load_asked(void)
{
	return asked;
}

int ofi_load_read(void)
{
	const char *setting = sim_core->setting("POLYCM_OFI_FABRIC");
	char *copy, *at, *name;
	int r = 0;

	asked = setting && *setting && strcmp(setting, DEFAULT_LIST) != 0;
	num_listed = 0;
	tried = false;
	if (asked && !strcmp(setting, "none"))
		return 0;
	copy = strdup(asked ? setting : DEFAULT_LIST);
	if (!copy)
		return -ENOMEM;
	for (name = strtok_r(copy, ", ", &at); name && !r; name = strtok_r(NULL, ", ", &at))
		r = add(name);
	free(copy);
	if (!r && num_listed && !find_file()) {
		sim_core->log(POLYCM_LOG_INFO, NULL, "no libfabric: this polycm was built without it, "
			      "or its package lacks %s; all data goes over TCP", FILE_NAME);
		num_listed = 0;
	}
	return r;
}

void ofi_load_offer(struct ofi_hello *hello)
{
	hello->num_carriers = num_listed;
	for (unsigned int i = 0; i < num_listed; i++)
		strcpy(hello->carriers[i].provider, list[i]);
}

void ofi_load_describe(char *ret_text, size_t size)
{
	size_t at = 0;

	*ret_text = '\0';
	for (unsigned int i = 0; i < num_listed && at < size; i++)
		at += (size_t)snprintf(ret_text + at, size - at, "%s%s", i ? ", " : "", list[i]);
}

static bool offers(const struct ofi_hello *hello, const char *provider)
{
	for (unsigned int i = 0; i < hello->num_carriers; i++)
		if (!strcmp(hello->carriers[i].provider, provider))
			return true;
	return false;
}

unsigned int ofi_load_common(const struct ofi_hello *theirs,
			     char ret_providers[OFI_MAX_CARRIERS][OFI_NAME])
{
	static struct ofi_hello ours;
	const struct ofi_hello *first = &ours, *second = theirs;
	unsigned int num = 0;

	ofi_load_offer(&ours);
	if (memcmp(theirs->host, ofi_self.host, OFI_HOST_ID) < 0) {
		first = theirs;
		second = &ours;
	}
	for (unsigned int i = 0; i < first->num_carriers; i++)
		if (offers(second, first->carriers[i].provider))
			strcpy(ret_providers[num++], first->carriers[i].provider);
	return num;
}

/* ------------------------------------------------------------------------
 * The thread.
 */

static const struct ofi_carrier_ops *open_library(char why[OFI_CARRIER_WHY])
{
	/* libfabric needs librdmacm and libibverbs, and not those of this program, which are us. */
#ifdef POLYCM_SANITIZED
	const int flags = RTLD_NOW | RTLD_LOCAL;
#else
	const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
	const struct ofi_carrier_ops *ops = NULL;
	ofi_carrier_query_t query;
	void *library = dlopen(file, flags);

	if (!library) {
		const char *error = dlerror();

		snprintf(why, OFI_CARRIER_WHY, "%s", error ? error : "it cannot be loaded");
		return NULL;
	}
	*(void **)&query = dlsym(library, OFI_CARRIER_QUERY);
	if (query)
		ops = query();
	if (ops && ops->version == OFI_CARRIER_VERSION)
		return ops;
	snprintf(why, OFI_CARRIER_WHY, "%.200s is of another version of polycm", file);
	return NULL;
}

/* Without the lock. */
static const struct ofi_carrier_ops *open_carrier(struct loader *own, struct ofi_carrier **ret_carrier,
						  struct ofi_carrier_name *ret_name,
						  char why[OFI_CARRIER_WHY])
{
	const struct ofi_carrier_ops *ops;
	const char *names[OFI_MAX_CARRIERS];
	socklen_t len = own->source.sa.sa_family == AF_INET ? sizeof(own->source.in)
							     : sizeof(own->source.in6);
	int r;

	for (unsigned int i = 0; i < own->num_providers; i++)
		names[i] = own->providers[i];
	ops = open_library(why);
	if (!ops)
		return NULL;
	r = ops->open(names, own->num_providers, &own->source.sa, len, &ofi_carry_user, ret_carrier,
		      ret_name, why);
	return r < 0 ? NULL : ops;
}

/* Lock held.  False: nothing is left to do. */
static bool publish(struct loader *own)
{
	char why[OFI_CARRIER_WHY] = "";
	const struct ofi_carrier_ops *ops;
	struct ofi_carrier *carrier;
	struct ofi_carrier_name name;
	struct ofi_signals *signals;

	atomic_store(&inside, true);
	sim_unlock();
	memset(&name, 0, sizeof(name));
	signals = ofi_signals_save();
	nic_refuse_quietly(true);	/* libfabric tries the limits of all devices, ours too */
	ops = open_carrier(own, &carrier, &name, why);
	nic_refuse_quietly(false);
	ofi_signals_restore(signals);
	atomic_store(&inside, false);
	sim_lock();
	if (ops && own->stop)
		ops->close(carrier);
	else if (ops)
		ofi_carry_opened(ops, carrier, &name);
	else if (!own->stop)
		sim_core->log(asked ? POLYCM_LOG_WARN : POLYCM_LOG_INFO, NULL,
			      "no fabric of POLYCM_OFI_FABRIC (%s): all data goes over TCP", why);
	return ops && !own->stop;
}

static void wake_thread(void)
{
	uint64_t one = 1;

	(void)!write(loader->wake, &one, sizeof(one));
}

static bool program_polls(void)
{
	uint64_t at = atomic_load(&polled_at);

	return at && (int64_t)(sim_now() - at) < (int64_t)POLLS_LATELY;
}

void ofi_load_fetch(void)
{
	if (!loader)
		return;
	atomic_store_explicit(&polled_at, sim_now(), memory_order_relaxed);
	(void)ofi_carry_poll();
}

void ofi_load_idle(void)
{
	if (!loader || !atomic_load_explicit(&polled_at, memory_order_relaxed))
		return;
	atomic_store(&polled_at, 0);
	if (atomic_load(&resting))
		wake_thread();
}

/* Without the lock, until there is something to do.  True: the descriptor says that there is. */
static bool sleep_for(const struct loader *own, int fd, int ms)
{
	struct pollfd wait[] = {
		{ .fd = own->wake, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	uint64_t count;

	/* A program that polls does it; and what cannot be waited for is looked at. */
	atomic_store(&resting, true);
	if (fd < 0 || program_polls())
		(void)poll(wait, 1, POLLED_MS);
	else
		(void)poll(wait, 2, ms);
	atomic_store(&resting, false);
	(void)!read(own->wake, &count, sizeof(count));
	return wait[1].revents;
}

static void *carrier_thread(void *arg)
{
	struct loader *own = arg;
	unsigned int vain = 0;
	bool sleeps;
	int fd, ms;

	pthread_setname_np(pthread_self(), "polycm-carrier");
	sim_lock();
	if (!own->stop && publish(own)) {
		while (!own->stop) {
			sleeps = program_polls();
			fd = ms = -1;
			if (!sleeps) {
				if (ofi_carry_poll())
					vain = 0;
				sleeps = ofi_carry_may_sleep(&fd, &ms);
			}
			sim_unlock();
			/* libfabric 1.17's net says so for ever: then the clock does. */
			if (vain >= VAIN_MAX && vain < VAIN_LONG && sleeps && fd >= 0) {
				(void)usleep(VAIN_US);
				vain++;
				sleeps = false;
			} else if (vain >= VAIN_LONG) {
				fd = -1;
			}
			if (sleeps && sleep_for(own, fd, ms))
				vain++;
			sim_lock();
		}
	}
	if (loader == own)
		loader = NULL;
	sim_unlock();
	close(own->wake);
	free(own);
	return NULL;
}

/* Before libfabric's own end, which its threads and ours must not meet. */
static void at_exit(void)
{
	if (sim_is_inherited() || !sim_lock_within(SIM_MS(INSIDE_MS)))
		return;
	ofi_load_stop();
	sim_unlock();
	/* Without the lock: libfabric may look for devices, which leads to us. */
	for (unsigned int ms = 0; atomic_load(&inside) && ms < INSIDE_MS; ms++)
		(void)usleep(1000);
}

static int start_thread(struct loader *new)
{
	sigset_t old;
	pthread_t thread;
	int error;

	hold_signals(&old);
	error = pthread_create(&thread, NULL, carrier_thread, new);
	release_signals(&old);
	if (error)
		return -error;
	pthread_detach(thread);
	return 0;
}

/* What came by IPv4 to a socket of both kinds. */
static void unmap(union sim_sockaddr *addr)
{
	in_addr_t ipv4;

	if (!sim_addr_is_mapped(&addr->sa))
		return;
	memcpy(&ipv4, addr->in6.sin6_addr.s6_addr + 12, sizeof(ipv4));
	memset(addr, 0, sizeof(*addr));
	addr->in.sin_family = AF_INET;
	addr->in.sin_addr.s_addr = ipv4;
}

void ofi_load(char providers[OFI_MAX_CARRIERS][OFI_NAME], unsigned int num, int stream)
{
	struct loader *new;
	socklen_t len = sizeof(new->source);
	int r = -ENOMEM;

	if (tried || !num)
		return;
	tried = true;
	new = calloc(1, sizeof(*new));
	if (!new)
		return;
	memcpy(new->providers, providers, sizeof(new->providers));
	new->num_providers = num;
	(void)getsockname(stream, &new->source.sa, &len);
	unmap(&new->source);
	sim_addr_set_port(&new->source, 0);
	new->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!watches_exit && new->wake >= 0)
		watches_exit = !atexit(at_exit);
	if (new->wake >= 0 && watches_exit)
		r = start_thread(new);
	if (r < 0) {
		sim_core->log(POLYCM_LOG_INFO, NULL, "the thread for POLYCM_OFI_FABRIC cannot be "
			      "started: all data goes over TCP");
		if (new->wake >= 0)
			close(new->wake);
		free(new);
		return;
	}
	loader = new;
}

void ofi_load_stop(void)
{
	if (!loader)
		return;
	loader->stop = true;
	atomic_store(&polled_at, 0);
	wake_thread();
	loader = NULL;
	ofi_carry_flush();
	ofi_carry_closed();
}

void ofi_load_forget(void)
{
	struct loader *parents = loader;

	/* What its library has open, and its locks, are the parent's: the child stays on the stream. */
	ofi_carry_forget();
	loader = NULL;
	atomic_store(&inside, false);
	if (!parents)
		return;
	close(parents->wake);
	free(parents);
}
