/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_hello.c - bytes as the body of a HELLO, of PORTS, of CARRIER and of REFUSED.  Each has one
 * form: what decodes encodes to the same bytes.
 */
#include "config.h"

#include <errno.h>

#include "fuzz.h"
#include "providers/soft/shm/segment.h"
#include "tests/unit/ofi_sample.h"

const char fuzz_name[] = "hello";

static uint8_t again[OFI_HELLO_MAX];

static void check_text(const char text[OFI_NAME])
{
	size_t len = strnlen(text, OFI_NAME);

	assert_true(len < OFI_NAME);
	for (size_t i = 0; i < len; i++)
		assert_true(text[i] >= ' ' && text[i] <= '~');
}

/* What its users rely on. */
static void check_ports(const struct ofi_ports *ports)
{
	assert_true(ports->num_ports <= OFI_MAX_PORTS);
	assert_true(ports->num_addresses <= OFI_MAX_ADDRESSES);
	for (unsigned int i = 0; i < ports->num_addresses; i++) {
		const struct sockaddr *addr = &ports->addresses[i].addr.sa;

		assert_true(ports->addresses[i].port < ports->num_ports);
		assert_true(addr->sa_family == AF_INET || addr->sa_family == AF_INET6);
		assert_false(sim_addr_is_loopback(addr) || sim_addr_is_zero(addr));
	}
}

static void try_hello(const uint8_t *data, size_t size)
{
	static struct ofi_hello hello;
	unsigned int version;
	int r = ofi_hello_decode(data, size, &hello, &version);

	if (r) {
		assert_true(r == -EBADMSG || (r == -EPROTONOSUPPORT && version != OFI_VERSION));
		return;
	}
	assert_int_equal(version, OFI_VERSION);
	assert_true(hello.slot < SIM_MAX_SLOTS && hello.want.slot < SIM_MAX_SLOTS);
	assert_true(hello.want.kind < OFI_WANT_KINDS && hello.num_carriers <= OFI_MAX_CARRIERS);
	check_text(hello.name);
	check_text(hello.transport);
	check_ports(&hello.ports);
	for (unsigned int i = 0; i < hello.num_carriers; i++) {
		check_text(hello.carriers[i].provider);
		check_text(hello.carriers[i].protocol);
		assert_true(hello.carriers[i].len <= OFI_CARRIER_NAME);
	}
	assert_int_equal(ofi_hello_encode(&hello, again), size);
	assert_memory_equal(again, data, size);
}

static void try_ports(const uint8_t *data, size_t size)
{
	static struct ofi_ports ports;

	if (ofi_ports_decode(data, size, &ports))
		return;
	check_ports(&ports);
	assert_int_equal(ofi_ports_encode(&ports, again), size);
	assert_memory_equal(again, data, size);
}

static void try_refused(const uint8_t *data, size_t size)
{
	struct ofi_refused refused;

	if (ofi_refused_decode(data, size, &refused))
		return;
	assert_int_equal(size, OFI_REFUSED_SIZE);
	check_text(refused.text);
	ofi_refused_encode(&refused, again);
	assert_memory_equal(again, data, size);
}

static void try_carrier(const uint8_t *data, size_t size)
{
	struct ofi_carrier_news news;

	if (ofi_carrier_decode(data, size, &news))
		return;
	check_text(news.name.provider);
	check_text(news.name.protocol);
	assert_true(news.what < OFI_CARRIER_WHATS && news.name.len <= OFI_CARRIER_NAME);
	assert_int_equal(ofi_carrier_encode(&news, again), size);
	assert_memory_equal(again, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_hello(data, size);
	try_ports(data, size);
	try_refused(data, size);
	try_carrier(data, size);
	return 0;
}

static struct ofi_hello hello_that_wants(uint8_t kind)
{
	struct ofi_hello hello;

	sample_hello(&hello);
	if (kind != OFI_WANT_SERVICE)
		hello.want.ps = 0;
	if (kind != OFI_WANT_SERVICE && kind != OFI_WANT_SOCKET)
		hello.want.addr = sample_addr("", 0);
	if (kind == OFI_WANT_SLOT)
		hello.want.slot = 1;
	if (kind == OFI_WANT_QPN)
		hello.want.qpn = 0x123456;
	hello.want.kind = kind;
	return hello;
}

void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size))
{
	static const char *const wants[OFI_WANT_KINDS] = { "any", "slot", "qpn", "service", "socket" };
	static struct ofi_hello hello;
	struct ofi_refused refused = { OFI_REFUSED_TRANSPORT, 7, "iwarp" };
	struct ofi_carrier_news ready = { .what = OFI_CARRIER_READY, .window = 64, .number = 3 };
	struct ofi_carrier_news changed = { .what = OFI_CARRIER_CHANGED };

	put("empty_hello", again, ofi_hello_encode(&hello, again));
	put("empty_ports", again, ofi_ports_encode(&hello.ports, again));
	for (uint8_t kind = 0; kind < OFI_WANT_KINDS; kind++) {
		hello = hello_that_wants(kind);
		put(wants[kind], again, ofi_hello_encode(&hello, again));
	}
	put("ports", again, ofi_ports_encode(&hello.ports, again));
	ofi_refused_encode(&refused, again);
	put("refused", again, OFI_REFUSED_SIZE);
	ready.name = hello.carriers[0];
	put("ready", again, ofi_carrier_encode(&ready, again));
	put("changed", again, ofi_carrier_encode(&changed, again));

	hello.num_carriers = OFI_MAX_CARRIERS;
	hello.ports.num_ports = OFI_MAX_PORTS;
	hello.ports.ports[1] = hello.ports.ports[0];
	hello.ports.num_addresses = OFI_MAX_ADDRESSES;
	for (unsigned int i = 2; i < OFI_MAX_ADDRESSES; i++)
		hello.ports.addresses[i] = hello.ports.addresses[i % 2];
	put("largest", again, ofi_hello_encode(&hello, again));
	(void)ofi_hello_encode(&hello, again);
	again[4]++;
	put("other_version", again, 8);
}
