/* SPDX-License-Identifier: BSD-2-Clause */
/* rsocket/settings.c - the administrator's defaults: a number in each file of a folder. */
#include "config.h"
#include "rsocket.h"

#include <stdio.h>

#include "wire.h"

#define FOLDER "/etc/rdma/rsocket/"

static struct rsocket_settings settings = {
	.sizes = {
		.send_buffer = 1 << 17,
		.receive_buffer = 1 << 17,
		.sends = 384,
		.receives = 384,
		.inline_data = 64,
	},
	.polling_ns = 10000,
};

static uint32_t number(const char *path, uint32_t max, uint32_t fallback)
{
	FILE *file = fopen(path, "re");
	unsigned long value;

	if (!file)
		return fallback;
	if (fscanf(file, "%lu", &value) != 1)
		value = fallback;
	fclose(file);
	return value < max ? (uint32_t)value : max;
}

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value > least ? value : least;
}

static void read_all(void)
{
	struct rsocket_sizes *sizes = &settings.sizes;
	uint32_t us = (uint32_t)(settings.polling_ns / 1000);

	sizes->receive_buffer = at_least(number(FOLDER "mem_default", 1u << 30, sizes->receive_buffer),
					 2 * RSOCKET_LOW_WATER);
	sizes->send_buffer = at_least(number(FOLDER "wmem_default", 1u << 30, sizes->send_buffer),
				      2 * RSOCKET_LOW_WATER);
	sizes->sends = (uint16_t)number(FOLDER "sqsize_default", UINT16_MAX - 1, sizes->sends);
	sizes->receives = (uint16_t)number(FOLDER "rqsize_default", UINT16_MAX - 1, sizes->receives);
	sizes->inline_data = (uint16_t)number(FOLDER "inline_default", UINT16_MAX - 1,
					      sizes->inline_data);
	sizes->iomaps = (uint16_t)rsocket_scale_up(rsocket_scale_down(
		number(FOLDER "iomap_size", UINT16_MAX, 0)));
	settings.polling_ns = number(FOLDER "polling_time", 1000000, us) * UINT64_C(1000);
}

const struct rsocket_settings *rsocket_settings(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	return &settings;
}
