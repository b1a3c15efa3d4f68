/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen_plugin.c - a library that is linked with libibverbs and librdmacm, or, with
 * -DOPENS, opens them itself.  plugin_use() returns 0 if it finds and opens the simulated
 * device, and an id finds it.
 */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

int plugin_use(void);

struct calls {
	struct ibv_device **(*list)(int *);
	void (*free_list)(struct ibv_device **);
	const char *(*name)(struct ibv_device *);
	struct ibv_context *(*open)(struct ibv_device *);
	int (*close)(struct ibv_context *);
	int (*create_id)(struct rdma_event_channel *, struct rdma_cm_id **, void *,
			 enum rdma_port_space);
	int (*bind)(struct rdma_cm_id *, struct sockaddr *);
	int (*resolve)(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int);
	int (*destroy_id)(struct rdma_cm_id *);
};

static int fails(const char *what)
{
	fprintf(stderr, "plugin: %s: %s\n", what, strerror(errno));
	return 1;
}

static int opens(const struct calls *calls)
{
	struct ibv_device **list = calls->list(NULL);
	struct ibv_context *context;

	if (!list || !list[0])
		return fails("no device is listed");
	if (strncmp(calls->name(list[0]), "sim", 3))
		return fails(calls->name(list[0]));
	context = calls->open(list[0]);
	calls->free_list(list);
	return context ? calls->close(context) : fails("open");
}

static int resolves(const struct calls *calls)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_cm_id *id;
	int bad;

	if (calls->create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return fails("no id");
	bad = calls->resolve(id, NULL, (struct sockaddr *)&at, 2000) ? fails("resolve") : 0;
	if (!bad && (!id->verbs || strncmp(id->verbs->device->name, "sim", 3)))
		bad = fails("an id without a simulated device");
	/* The caller's errno, not that of another namespace. */
	errno = 0;
	if (!bad && (!calls->bind(id, (struct sockaddr *)&at) || errno != EINVAL))
		bad = fails("a bind of a bound id");
	return calls->destroy_id(id) || bad;
}

#ifdef OPENS

#define FIND(member, library, call)                                       \
	do {                                                              \
		*(void **)&calls.member = dlsym(library, #call);          \
		if (!calls.member)                                        \
			return fails(dlerror());                          \
	} while (0)

/* libpolycm finds libibverbs' own function, which does this. */
static int reads(void *verbs)
{
	int (*read_file)(const char *, const char *, char *, size_t);
	char text[32];

	*(void **)&read_file = dlsym(verbs, "ibv_read_sysfs_file");
	if (!read_file || read_file("/proc/self", "comm", text, sizeof(text)) < 1)
		return fails("ibv_read_sysfs_file");
	return 0;
}

int plugin_use(void)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_NOW);
	void *rdmacm = dlopen("librdmacm.so.1", RTLD_NOW);
	struct calls calls;

	if (!verbs || !rdmacm)
		return fails(dlerror());
	FIND(list, verbs, ibv_get_device_list);
	FIND(free_list, verbs, ibv_free_device_list);
	FIND(name, verbs, ibv_get_device_name);
	FIND(open, verbs, ibv_open_device);
	FIND(close, verbs, ibv_close_device);
	FIND(create_id, rdmacm, rdma_create_id);
	FIND(bind, rdmacm, rdma_bind_addr);
	FIND(resolve, rdmacm, rdma_resolve_addr);
	FIND(destroy_id, rdmacm, rdma_destroy_id);
	return opens(&calls) || resolves(&calls) || reads(verbs);
}

#else

/* The linker's own business: no call, no dlsym(). */
static const struct calls addresses = {
	ibv_get_device_list, ibv_free_device_list, ibv_get_device_name, ibv_open_device,
	ibv_close_device,
	rdma_create_id, rdma_bind_addr, rdma_resolve_addr, rdma_destroy_id,
};

static int calls_directly(void)
{
	struct rdma_event_channel *channel;
	struct ibv_context *context;
	struct ibv_device **list;

	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		return fails("no device is listed by a call");
	context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!context || ibv_close_device(context))
		return fails("open by a call");
	channel = rdma_create_event_channel();
	if (!channel)
		return fails("a channel by a call");
	rdma_destroy_event_channel(channel);
	return 0;
}

int plugin_use(void)
{
	return calls_directly() || opens(&addresses) || resolves(&addresses);
}

#endif
