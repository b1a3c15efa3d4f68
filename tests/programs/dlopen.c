/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dlopen.c - a program that is not linked with libibverbs and librdmacm: opens them in each way
 * that dlopen.sh names, and lists and opens the simulated device.
 */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct calls {
	struct ibv_device **(*list)(int *);
	void (*free_list)(struct ibv_device **);
	const char *(*name)(struct ibv_device *);
	struct ibv_context *(*open)(struct ibv_device *);
	int (*close)(struct ibv_context *);
	int (*query_port)(struct ibv_context *, uint8_t, void *);
	int (*fork_init)(void);
};

struct entry {
	const char *name;
	size_t offset;
};

static const struct entry entries[] = {
	{ "ibv_get_device_list", offsetof(struct calls, list) },
	{ "ibv_free_device_list", offsetof(struct calls, free_list) },
	{ "ibv_get_device_name", offsetof(struct calls, name) },
	{ "ibv_open_device", offsetof(struct calls, open) },
	{ "ibv_close_device", offsetof(struct calls, close) },
	{ "ibv_query_port", offsetof(struct calls, query_port) },
	/* libibverbs' own: polycm has none. */
	{ "ibv_fork_init", offsetof(struct calls, fork_init) },
};

static int fails(const char *what)
{
	const char *error = dlerror();

	fprintf(stderr, "%s: %s\n", what, error ? error : strerror(errno));
	return 1;
}

/* NULL: the default version. */
static int find(void *library, const char *version, struct calls *calls)
{
	void *found;

	if (!library)
		return fails("cannot be opened");
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		found = version ? dlvsym(library, entries[i].name, version) :
				  dlsym(library, entries[i].name);
		if (!found)
			return fails(entries[i].name);
		memcpy((char *)calls + entries[i].offset, &found, sizeof(found));
	}
	return 0;
}

static int use(void *library, const char *version)
{
	struct calls calls;
	struct ibv_device **list;
	struct ibv_context *context;
	struct ibv_port_attr port;
	int num = 0;

	if (find(library, version, &calls))
		return 1;
	list = calls.list(&num);
	if (!list || num < 1)
		return fails("no device is listed");
	if (strncmp(calls.name(list[0]), "sim", 3))
		return fails("no simulated device");
	context = calls.open(list[0]);
	calls.free_list(list);
	if (!context || calls.query_port(context, 1, &port) || port.state != IBV_PORT_ACTIVE)
		return fails("the device cannot be opened");
	return calls.close(context) || calls.fork_init() ? fails("close") : 0;
}

static int plugin(void *library)
{
	int (*run)(void) = NULL;

	if (!library)
		return fails("the plugin cannot be opened");
	*(void **)&run = dlsym(library, "plugin_use");
	return run ? run() : fails("plugin_use");
}

static int connects(void *library)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *to;
	struct ibv_qp_init_attr qp = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	int (*getaddrinfo)(const char *, const char *, const struct rdma_addrinfo *,
			   struct rdma_addrinfo **);
	int (*create_ep)(struct rdma_cm_id **, struct rdma_addrinfo *, struct ibv_pd *,
			 struct ibv_qp_init_attr *);
	int (*connect)(struct rdma_cm_id *, struct rdma_conn_param *);
	struct rdma_cm_id *id;

	if (!library)
		return fails("librdmacm");
	*(void **)&getaddrinfo = dlsym(library, "rdma_getaddrinfo");
	*(void **)&create_ep = dlsym(library, "rdma_create_ep");
	*(void **)&connect = dlvsym(library, "rdma_connect", "RDMACM_1.0");
	if (!getaddrinfo || !create_ep || !connect)
		return fails("dlsym");
	if (getaddrinfo("127.0.0.1", "7471", &hints, &to) || create_ep(&id, to, NULL, &qp) ||
	    connect(id, NULL))
		return fails("no connection");
	printf("connected through %s\n", id->verbs->device->name);
	return 0;
}

static int sockets(void *library)
{
	int (*rsocket)(int, int, int) = NULL, (*rclose)(int) = NULL;
	int (*rbind)(int, const struct sockaddr *, socklen_t) = NULL;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int s;

	*(void **)&rsocket = library ? dlsym(library, "rsocket") : NULL;
	*(void **)&rbind = library ? dlsym(library, "rbind") : NULL;
	*(void **)&rclose = library ? dlsym(library, "rclose") : NULL;
	if (!rsocket || !rbind || !rclose)
		return fails("rsocket");
	s = rsocket(AF_INET, SOCK_STREAM, 0);
	if (s < 0 || rbind(s, (struct sockaddr *)&at, sizeof(at)))
		return fails("rsocket");
	return rclose(s);
}

/* The oldest interface, which libibverbs still has, on top of the newer. */
static int oldest(void *library)
{
	struct ibv_device **(*list)(int *) = NULL;
	int num = 0;

	*(void **)&list = library ? dlvsym(library, "ibv_get_device_list", "IBVERBS_1.0") : NULL;
	if (!list)
		return fails("IBVERBS_1.0");
	return list(&num) && num == 1 ? 0 : fails("no device is listed");
}

static int flags_of(const char *text)
{
	static const struct {
		const char *name;
		int flag;
	} names[] = {
		{ "now", RTLD_NOW }, { "lazy", RTLD_LAZY }, { "global", RTLD_GLOBAL },
		{ "deepbind", RTLD_DEEPBIND }, { "noload", RTLD_NOLOAD }, { "nodelete", RTLD_NODELETE },
	};
	int flags = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(text, names[i].name))
			flags |= names[i].flag;
	return flags;
}

/* dlopen use|plugin|connects|sockets|oldest FILE FLAGS [VERSION or -] ... */
int main(int argc, char **argv)
{
	for (argv++, argc--; argc >= 3; argv += 4, argc -= 4) {
		const char *what = argv[0], *file = argv[1], *version = argc > 3 ? argv[3] : "-";
		int flags = flags_of(argv[2]), bad;
		void *library = strstr(argv[2], "namespace") ? dlmopen(LM_ID_NEWLM, file, flags) :
							       dlopen(file, flags);

		if (!strcmp(what, "use"))
			bad = use(library, strcmp(version, "-") ? version : NULL);
		else if (!strcmp(what, "plugin"))
			bad = plugin(library);
		else if (!strcmp(what, "connects"))
			bad = connects(library);
		else if (!strcmp(what, "sockets"))
			bad = sockets(library);
		else
			bad = oldest(library);
		if (bad)
			return 1;
	}
	puts("done");
	return 0;
}
