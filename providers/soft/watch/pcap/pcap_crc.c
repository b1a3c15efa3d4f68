/* SPDX-License-Identifier: BSD-2-Clause */
/* watch/pcap/pcap_crc.c - CRC-32, CRC-32C, VCRC and the Internet's checksum. */
#include "config.h"

#include <stdbool.h>

#include "pcap_crc.h"

/* Polynomials with the lowest power in the highest bit. */
#define POLY_ETHERNET 0xedb88320u
#define POLY_CASTAGNOLI 0x82f63b78u
#define POLY_VCRC 0xd008u

struct table {
	bool made;
	uint32_t entry[256];
};

static void make(struct table *table, uint32_t poly)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ poly : crc >> 1;
		table->entry[i] = crc;
	}
	table->made = true;
}

static uint32_t run(struct table *table, uint32_t poly, uint32_t crc, const uint8_t *data,
		    size_t len)
{
	if (!table->made)
		make(table, poly);
	while (len--)
		crc = crc >> 8 ^ table->entry[(crc ^ *data++) & 0xff];
	return crc;
}

uint32_t sim_crc32(uint32_t crc, const void *data, size_t len)
{
	static struct table table;

	return ~run(&table, POLY_ETHERNET, ~crc, data, len);
}

uint32_t sim_crc32c(uint32_t crc, const void *data, size_t len)
{
	static struct table table;

	return ~run(&table, POLY_CASTAGNOLI, ~crc, data, len);
}

uint16_t sim_vcrc(const void *data, size_t len)
{
	static struct table table;

	return (uint16_t)~run(&table, POLY_VCRC, 0xffff, data, len);
}

uint32_t sim_inet_sum(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *at = data;

	for (; len > 1; len -= 2, at += 2) {
		sum += (uint32_t)at[0] << 8 | at[1];
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return len ? sum + ((uint32_t)at[0] << 8) : sum;
}

uint16_t sim_inet_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}
