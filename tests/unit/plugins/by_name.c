/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider that behaves as the name of its file says, so that copies of one
 * module make many plugins: good ones (acme, beta, lazy, the layers wrap and wrap-two) and ones that are
 * wrong in one way each.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "polycm/layer.h"
#include "polycm/provider.h"
#include "tests/unit/idle_ops.h"

static const struct polycm_core *core;
static struct polycm_module *self;
static char name[64];

static int init(struct polycm_module *module, void **ret_ctx)
{
	self = module;
	*ret_ctx = name;
	return strcmp(name, "init-fails") ? 0 : -EIO;
}

static int enumerate(void *ctx)
{
	struct polycm_device_info info = {
		.size = sizeof(info),
		.name = "acme0",
		.transport = "acme-wire",
		.node_guid = 0x0102030405060708,
		.cookie = ctx,
	};
	int r;

	if (!strcmp(name, "enumerate-fails"))
		return -EIO;
	if (strcmp(name, "acme") != 0)
		return 0;
	r = core->device_add(self, &info, NULL);
	return r == -EEXIST ? 0 : r;
}

static const void *extension(const char *what, unsigned int version)
{
	return !strcmp(what, "acme") && version == 3 ? name : NULL;
}

static void bogus(void)
{
	__builtin_trap();
}

/* Longer than the core knows them: what it does not know must not be looked at. */
static struct {
	struct polycm_provider provider;
	uint64_t more[8];
} desc;

static struct {
	struct polycm_ops ops;
	void (*more[8])(void);
} ops;

static const struct polycm_layer_ops layer = { .size = sizeof(layer) };
static struct polycm_transport transport;

static struct polycm_option options[2];
static struct {
	struct polycm_option option;
	uint64_t more;
} long_options[2];

static void fill_good(void)
{
	ops.ops = (struct polycm_ops){
		.size = sizeof(struct polycm_ops),
		.init = init,
		.enumerate = enumerate,
		.match = match,
		.open = open_id,
		.close = end,
		.stop = end,
		.free = end,
	};
	transport = (struct polycm_transport){
		.size = sizeof(transport),
		.shape = POLYCM_RULES_SHAPE,
		.name = "acme-wire",
		.description = "a vendor's own",
		.protocol = POLYCM_PROTO_IB_CM,
		.services = POLYCM_SVC_ESTABLISH,
		.limit[POLYCM_KIND_RC] = { 50, 190, 140 },
		.capacity[POLYCM_KIND_RC] = { 92, 196, 148 },
		.cm_header_len = 36,
		.max_retry_count = 7,
	};
	for (size_t i = 0; i < 2; i++)
		options[i] = (struct polycm_option){
			.size = sizeof(options[i]),
			.name = i ? "POLYCM_ACME_SIZE" : "POLYCM_ACME_COLOR",
			.default_value = i ? "7" : "red",
			.choices = i ? NULL : "red|green",
			.help = "How it is.",
		};
	desc.provider = (struct polycm_provider){
		.size = sizeof(struct polycm_provider),
		.abi_minor = POLYCM_ABI_MINOR,
		.name = name,
		.version = "1.2",
		.description = "a provider of a test",
		.ops = &ops.ops,
		.id_size = 40,
		.channel_size = 24,
		.extension = extension,
	};
}

static void add_options(void)
{
	desc.provider.options = options;
	desc.provider.num_options = 2;
}

static void fill_tables(void)
{
	if (!strcmp(name, "acme") || !strcmp(name, "twin"))
		desc.provider.transport = &transport;
	if (!strcmp(name, "acme"))
		add_options();
	if (!strncmp(name, "wrap", 4))
		desc.provider.layer = &layer;
	if (!strcmp(name, "wrap-wire"))
		desc.provider.transport = &transport;
	if (!strcmp(name, "lazy"))
		desc.provider.flags = POLYCM_PROVIDER_ON_REQUEST;

	if (!strcmp(name, "short-desc"))
		desc.provider.size = offsetof(struct polycm_provider, extension);
	if (!strcmp(name, "flag"))
		desc.provider.flags = 1u << 7;
	if (!strcmp(name, "flag-newer")) {
		desc.provider.flags = 1u << 31;
		desc.provider.abi_minor = 9;
	}
	if (!strcmp(name, "short-ops"))
		ops.ops.size = offsetof(struct polycm_ops, free);
	if (!strcmp(name, "short-newer")) {
		ops.ops.size = offsetof(struct polycm_ops, free);
		desc.provider.abi_minor = 1;
	}
	if (!strncmp(name, "long-", 5)) {
		desc.provider.abi_minor = !strcmp(name, "long-tables");
		desc.provider.size = sizeof(desc);
		ops.ops.size = sizeof(ops);
		memset(desc.more, 0xff, sizeof(desc.more));
		for (size_t i = 0; i < 2; i++) {
			long_options[i].option = options[i];
			long_options[i].option.size = sizeof(long_options[i]);
			long_options[i].option.name = i ? "POLYCM_LONG_TABLES_B" :
							   "POLYCM_LONG_TABLES_A";
			long_options[i].more = UINT64_MAX;
		}
		desc.provider.options = &long_options[0].option;
		desc.provider.num_options = 2;
		for (size_t i = 0; i < 8; i++)
			ops.more[i] = bogus;
	}
	if (!strcmp(name, "no-ops") || !strcmp(name, "settings-no-ops"))
		desc.provider.ops = NULL;
	if (!strcmp(name, "settings-layer")) {
		desc.provider.layer = &layer;
		desc.provider.transport = &transport;
	}
}

static void fill_names(void)
{
	if (!strcmp(name, "no-name"))
		desc.provider.name = NULL;
	if (!strcmp(name, "liar"))
		desc.provider.name = "honest";
	if (!strcmp(name, "bad-name"))
		desc.provider.name = "../\n";
	if (!strcmp(name, "huge-id") || !strcmp(name, "settings-huge-id"))
		desc.provider.id_size = UINT32_MAX;

	if (!strcmp(name, "no-id-size"))
		desc.provider.id_size = 0;

	if (!strcmp(name, "no-match") || !strcmp(name, "settings-no-match"))
		ops.ops.match = NULL;
	if (!strcmp(name, "no-enumerate"))
		ops.ops.enumerate = NULL;
	if (!strcmp(name, "no-open"))
		ops.ops.open = NULL;
	if (!strcmp(name, "no-close"))
		ops.ops.close = NULL;
	if (!strcmp(name, "no-stop"))
		ops.ops.stop = NULL;
	if (!strcmp(name, "no-free"))
		ops.ops.free = NULL;
}

static void fill_options(void)
{
	if (!strncmp(name, "option", 6) || !strncmp(name, "settings-", 9))
		add_options();
	if (!strcmp(name, "options-many"))
		desc.provider.num_options = 100000000;
	if (!strcmp(name, "options-null"))
		desc.provider.options = NULL;
	if (!strcmp(name, "options-short"))
		options[0].size = 8;
	if (!strcmp(name, "option-x")) {
		options[0].name = "POLYCM_OPTION_X_A";
		options[1].name = "POLYCM_OPTION_X_A";
	}
	if (!strcmp(name, "option-no-help")) {
		options[0].name = "POLYCM_OPTION_NO_HELP_A";
		options[0].help = NULL;
	}
}

static void fill_transport(void)
{
	if (!strncmp(name, "wire", 4) || !strcmp(name, "settings-wire"))
		desc.provider.transport = &transport;
	if (!strcmp(name, "wire-no-name"))
		transport.name = NULL;
	if (!strcmp(name, "wire-short"))
		transport.size = 4;
	if (!strcmp(name, "wire-cut"))
		transport.size = offsetof(struct polycm_transport, path_mtu);
	if (!strcmp(name, "wire-shape"))
		transport.shape = 0x0904;
	if (!strcmp(name, "wire-flag"))
		transport.flags = 1u << 20;
	if (!strcmp(name, "wire-limits") || !strcmp(name, "settings-wire"))
		transport.limit[POLYCM_KIND_RC][POLYCM_MSG_CONNECT] = 57;
}

__attribute__((visibility("default")))
int polycm_provider_query_v1(const struct polycm_core *host,
			     const struct polycm_provider **ret_provider)
{
	Dl_info info;
	const char *base;

	if (!dladdr((void *)(uintptr_t)polycm_provider_query_v1, &info))
		return -ENOEXEC;
	base = strrchr(info.dli_fname, '/') + strlen("/provider-");
	snprintf(name, sizeof(name), "%.*s", (int)(strlen(base) - strlen(".so")), base);
	core = host;

	if (!strcmp(name, "query-fails"))
		return -ENOSYS;
	if (!strcmp(name, "query-odd"))
		return 12345;
	if (!strcmp(name, "query-null"))
		return 0;
	fill_good();
	fill_tables();
	fill_names();
	fill_options();
	fill_transport();
	*ret_provider = &desc.provider;
	return 0;
}
