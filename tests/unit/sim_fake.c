/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/soft/host/host.h"
#include "sim_fake.h"
#include "tests/cmocka_all.h"
#include "host_services.h"

#define MAX_SETTINGS 8

const struct polycm_transport sim_fake_roce = {
	.size = sizeof(sim_fake_roce),
	.name = "roce",
	.protocol = POLYCM_PROTO_IB_CM,
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};

const struct polycm_transport sim_fake_ib = {
	.size = sizeof(sim_fake_ib),
	.name = "ib",
	.protocol = POLYCM_PROTO_IB_CM,
	.flags = POLYCM_T_HAS_SA,
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.link_layer = IBV_LINK_LAYER_INFINIBAND,
};

const struct polycm_transport sim_fake_iwarp = {
	.size = sizeof(sim_fake_iwarp),
	.name = "iwarp",
	.protocol = POLYCM_PROTO_MPA,
	.node_type = IBV_NODE_RNIC,
	.transport_type = IBV_TRANSPORT_IWARP,
	.link_layer = IBV_LINK_LAYER_ETHERNET,
};

static const struct polycm_transport own_protocol = {
	.size = sizeof(own_protocol),
	.name = "own",
	.protocol = POLYCM_PROTO_OTHER,
};

static struct {
	char name[48], value[160];
} settings[MAX_SETTINGS];

static char lines[POLYCM_LOG_TRACE + 1][1024];
static unsigned int counts[POLYCM_LOG_TRACE + 1];

struct polycm_device_info sim_fake_devices[SIM_FAKE_DEVICES];
unsigned int sim_fake_added, sim_fake_removed;

static char runtime_dir[64];

static void fake_log(enum polycm_log_level level, const struct polycm_id *id, const char *format,
		     ...)
{
	va_list args;

	(void)id;
	va_start(args, format);
	vsnprintf(lines[level], sizeof(lines[level]), format, args);
	va_end(args);
	counts[level]++;
}

static bool fake_log_enabled(enum polycm_log_level level)
{
	(void)level;
	return true;
}

static const char *fake_setting(const char *name)
{
	for (unsigned int i = 0; i < MAX_SETTINGS; i++)
		if (!strcmp(settings[i].name, name))
			return settings[i].value;
	return NULL;
}

static const struct polycm_transport *fake_transport(const char *name)
{
	static const struct polycm_transport *const all[] = {
		&sim_fake_roce, &sim_fake_ib, &sim_fake_iwarp, &own_protocol,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

static int fake_device_add(struct polycm_module *module, const struct polycm_device_info *info,
			   struct polycm_device **ret_device)
{
	assert_ptr_equal(module, sim_module);
	assert_in_range(sim_fake_added, 0, SIM_FAKE_DEVICES - 1);
	sim_fake_devices[sim_fake_added] = *info;
	*ret_device = (struct polycm_device *)&sim_fake_devices[sim_fake_added++];
	return 0;
}

static void fake_device_remove(struct polycm_device *device)
{
	(void)device;
	sim_fake_removed++;
}

static const struct polycm_core fake_core = {
	.why = no_words,
	.size = sizeof(fake_core),
	.device_add = fake_device_add,
	.device_remove = fake_device_remove,
	.transport = fake_transport,
	.setting = fake_setting,
	.log_enabled = fake_log_enabled,
	.log = fake_log,
	.alloc = malloc,
	.free = free,
};

void sim_fake_init(void)
{
	static char module;

	sim_core = &fake_core;
	sim_time = &clock_services;
	sim_module = (struct polycm_module *)&module;
	memset(settings, 0, sizeof(settings));
	memset(lines, 0, sizeof(lines));
	memset(counts, 0, sizeof(counts));
	memset(sim_fake_devices, 0, sizeof(sim_fake_devices));
	sim_fake_added = sim_fake_removed = 0;
}

void sim_fake_set(const char *name, const char *value)
{
	unsigned int i = 0;

	while (settings[i].name[0] && strcmp(settings[i].name, name))
		i++;
	snprintf(settings[i].name, sizeof(settings[i].name), "%s", name);
	snprintf(settings[i].value, sizeof(settings[i].value), "%s", value);
}

int sim_fake_open(void **state)
{
	(void)state;
	sim_fake_init();
	assert_int_equal(sim_engine_start(SIM_CLOCK_VIRTUAL, 1), 0);
	sim_lock();
	assert_int_equal(sim_fabric_begin(), 0);
	return 0;
}

int sim_fake_close(void **state)
{
	(void)state;
	sim_fabric_close();
	sim_unlock();
	sim_engine_stop();
	return 0;
}

const char *sim_fake_log(enum polycm_log_level level)
{
	return lines[level];
}

unsigned int sim_fake_log_count(enum polycm_log_level level)
{
	return counts[level];
}

void sim_fake_make_runtime_dir(void)
{
	strcpy(runtime_dir, "/tmp/polycm-test-");
	memset(runtime_dir + strlen(runtime_dir), 'X', 6);	/* for mkdtemp() to replace */
	assert_non_null(mkdtemp(runtime_dir));
	assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime_dir, 1), 0);
}

void sim_fake_remove_runtime_dir(void)
{
	rmdir(sim_fake_path("polycm"));
	assert_int_equal(rmdir(runtime_dir), 0);
}

const char *sim_fake_path(const char *format, ...)
{
	static char path[512];
	va_list args;
	int len;

	len = snprintf(path, sizeof(path), "%s/", runtime_dir);
	va_start(args, format);
	vsnprintf(path + len, sizeof(path) - (size_t)len, format, args);
	va_end(args);
	return path;
}
