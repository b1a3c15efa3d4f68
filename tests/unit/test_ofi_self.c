/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings of the provider ofi, its file with the key, and what follows from them.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ofi_sample.h"
#include "ofi_world.h"
#include "providers/ofi/self.h"

static int setup(void **state)
{
	(void)state;
	sim_fake_init();
	memset(&ofi_self, 0, sizeof(ofi_self));
	sim_fake_make_runtime_dir();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_fake_remove_runtime_dir();
	return 0;
}

/* Refused, with a line that names the setting and has these words. */
static void refused(const char *name, const char *value, int error, const char *why)
{
	sim_fake_init();
	sim_fake_set(name, value);
	if (ofi_self_read() != error)
		fail_msg("%s=%s is not refused with %d", name, value, error);
	ofi_self_drop();
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 1);
	assert_non_null(strstr(sim_fake_log(POLYCM_LOG_ERROR), name));
	if (!strstr(sim_fake_log(POLYCM_LOG_ERROR), why))
		fail_msg("%s=%s: %s", name, value, sim_fake_log(POLYCM_LOG_ERROR));
}

static void set(const char *name, const char *value)
{
	sim_fake_init();
	sim_fake_set(name, value);
	if (ofi_self_read())
		fail_msg("%s=%s: %s", name, value, sim_fake_log(POLYCM_LOG_ERROR));
}

static bool may_use(const char *address)
{
	union sim_sockaddr addr = { 0 };
	uint8_t bits;

	assert_int_equal(sim_addr_parse(address, &addr, &bits), 0);
	return ofi_self_may_use(&addr.sa);
}

static void addresses(void **state)
{
	(void)state;
	set("POLYCM_OFI_ADDRESSES", "");
	assert_true(may_use("10.0.0.7") && may_use("fd00::1"));
	ofi_self_drop();
	set("POLYCM_OFI_ADDRESSES", "10.0.0.7,192.168.1.0/24 fd00::/64");
	assert_true(may_use("10.0.0.7") && may_use("::ffff:10.0.0.7"));
	assert_false(may_use("10.0.0.8") || may_use("::ffff:10.0.0.8"));
	assert_true(may_use("192.168.1.9") && may_use("fd00::9"));
	assert_false(may_use("192.168.2.9") || may_use("fd00:0:0:1::9") || may_use("127.0.0.1"));
	ofi_self_drop();
	refused("POLYCM_OFI_ADDRESSES", "10.0.0.7,eth0", -EINVAL, "eth0");
	refused("POLYCM_OFI_ADDRESSES", "10.0.0.0/33", -EINVAL, "10.0.0.0/33");
}

static void nothing_set(void **state)
{
	(void)state;
	assert_int_equal(ofi_self_read(), 0);
	assert_string_equal(ofi_self.transport->name, "roce");
	assert_int_equal(ofi_self.gate, 14791);
	assert_null(ofi_self.key);
	assert_int_equal(ofi_self.num_hosts, 0);
	assert_int_not_equal(ofi_self.token, 0);
	assert_true(*ofi_self.name != '\0');
	ofi_self_drop();
	/* What is set to nothing is not set. */
	sim_fake_set("POLYCM_OFI_TRANSPORT", "");
	sim_fake_set("POLYCM_OFI_PORT", "");
	sim_fake_set("POLYCM_OFI_HOSTS", "");
	sim_fake_set("POLYCM_OFI_KEY", "");
	assert_int_equal(ofi_self_read(), 0);
	assert_int_equal(ofi_self.gate, 14791);
	ofi_self_drop();
}

static void transports(void **state)
{
	(void)state;
	set("POLYCM_OFI_TRANSPORT", "iwarp");
	assert_string_equal(ofi_self.transport->name, "iwarp");
	ofi_self_drop();
	refused("POLYCM_OFI_TRANSPORT", "none", -ENODEV, "no installed provider");
	refused("POLYCM_OFI_TRANSPORT", "own", -ENODEV, "cannot be played");
}

static void ports(void **state)
{
	static const char *const bad[] = {
		"0", "65536", "-1", "+1", " 1", "1 ", "1x", "x", "0x10", "99999999999999999999",
		"14791,",
	};

	(void)state;
	set("POLYCM_OFI_PORT", "1");
	assert_int_equal(ofi_self.gate, 1);
	ofi_self_drop();
	set("POLYCM_OFI_PORT", "65535");
	assert_int_equal(ofi_self.gate, 65535);
	ofi_self_drop();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused("POLYCM_OFI_PORT", bad[i], -EINVAL, bad[i]);
}

/* The fake core keeps short ones only. */
static const char *long_name, *long_value;
static const char *(*short_setting)(const char *name);

static const char *long_setting(const char *name)
{
	return strcmp(name, long_name) ? short_setting(name) : long_value;
}

static void set_long(const char *name, const char *value)
{
	static struct polycm_core core;

	core = *sim_core;
	short_setting = core.setting;
	long_name = name;
	long_value = value;
	core.setting = long_setting;
	sim_core = &core;
}

static uint16_t gate_of(const char *address)
{
	const union sim_sockaddr addr = sample_addr(address, 0);

	return ofi_self_gate_of(&addr.sa);
}

static void hosts(void **state)
{
	static const char *const bad[] = {
		"10.0.0.7:", "10.0.0.7:0", "10.0.0.7:65536", "10.0.0.7:x", "[fd00::7]x", "[fd00::7]:",
		"[fd00::7]4795", "[fd00::7", "10.0.0.7:1,10.0.0.8:y", ":4795", "[]:4795",
	};

	(void)state;
	set("POLYCM_OFI_HOSTS", "10.0.0.7:4795, 10.0.0.8 ,,[fd00::7]:4796,fd00::8,[fd00::9]");
	assert_int_equal(ofi_self.num_hosts, 5);
	assert_int_equal(gate_of("10.0.0.7"), 4795);
	assert_int_equal(gate_of("10.0.0.8"), 14791);
	assert_int_equal(gate_of("fd00::7"), 4796);
	assert_int_equal(gate_of("fd00::8"), 14791);
	assert_int_equal(gate_of("10.0.0.9"), 14791);
	ofi_self_drop();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused("POLYCM_OFI_HOSTS", bad[i], -EINVAL, "");
}

/* One more than there is room for must not be left out without a word. */
static void too_many_hosts(void **state)
{
	static char list[16 * (OFI_MAX_HOSTS + 1)];
	char *at = list;

	(void)state;
	for (unsigned int i = 0; i < OFI_MAX_HOSTS; i++)
		at += sprintf(at, "10.1.%u.%u,", i / 256, i % 256);
	set_long("POLYCM_OFI_HOSTS", list);
	assert_int_equal(ofi_self_read(), 0);
	assert_int_equal(ofi_self.num_hosts, OFI_MAX_HOSTS);
	ofi_self_drop();
	sprintf(at, "10.2.0.0");
	assert_int_equal(ofi_self_read(), -EINVAL);
	ofi_self_drop();
	assert_int_equal(sim_fake_log_count(POLYCM_LOG_ERROR), 1);
}

/* ------------------------------------------------------------------------
 * The key.
 */

static const char *make_key(const char *text, size_t len, mode_t mode)
{
	const char *path = sim_fake_path("key");
	int fd;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	assert_int_equal(chmod(path, mode), 0);
	return path;
}

static void key_files(void **state)
{
	static char large[OFI_KEY_MAX + 1];
	static const mode_t open_modes[] = { 0640, 0604, 0620, 0602, 0610, 0601, 0660, 0644 };

	(void)state;
	set("POLYCM_OFI_KEY", make_key("secret", 6, 0600));
	assert_int_equal(ofi_self.key_len, 6);
	assert_memory_equal(ofi_self.key, "secret", 6);
	ofi_self_drop();
	set("POLYCM_OFI_KEY", make_key("secret", 6, 0400));
	ofi_self_drop();
	set("POLYCM_OFI_KEY", make_key(large, OFI_KEY_MAX, 0600));
	assert_int_equal(ofi_self.key_len, OFI_KEY_MAX);
	ofi_self_drop();
	refused("POLYCM_OFI_KEY", make_key(large, OFI_KEY_MAX + 1, 0600), -EINVAL, "1 to 4096");
	refused("POLYCM_OFI_KEY", make_key("", 0, 0600), -EINVAL, "1 to 4096");
	for (size_t i = 0; i < sizeof(open_modes) / sizeof(open_modes[0]); i++)
		refused("POLYCM_OFI_KEY", make_key("secret", 6, open_modes[i]), -EACCES, "chmod 600");
	assert_int_equal(unlink(sim_fake_path("key")), 0);
	refused("POLYCM_OFI_KEY", sim_fake_path("key"), -ENOENT, "No such file");
	refused("POLYCM_OFI_KEY", sim_fake_path("."), -EINVAL, "1 to 4096");
	/* Nobody writes to it: that must not be waited for. */
	assert_int_equal(mkfifo(sim_fake_path("fifo"), 0600), 0);
	refused("POLYCM_OFI_KEY", sim_fake_path("fifo"), -EINVAL, "1 to 4096");
	assert_int_equal(unlink(sim_fake_path("fifo")), 0);
}

/* ------------------------------------------------------------------------
 * Who we are.
 */

static void the_host_is_one_for_user_transport_gate_and_network(void **state)
{
	uint8_t first[OFI_HOST_ID];
	char name[160], other[160];
	uint64_t rules;

	(void)state;
	assert_int_equal(ofi_self_read(), 0);
	memcpy(first, ofi_self.host, sizeof(first));
	rules = ofi_self.rules;
	ofi_self_fabric(name, sizeof(name));
	ofi_self_drop();
	assert_int_equal(ofi_self_read(), 0);
	assert_memory_equal(first, ofi_self.host, sizeof(first));
	assert_true(rules == ofi_self.rules);
	ofi_self_drop();

	set("POLYCM_OFI_PORT", "4795");
	ofi_self_fabric(other, sizeof(other));
	assert_string_not_equal(name, other);
	assert_memory_not_equal(first, ofi_self.host, sizeof(first));
	assert_true(rules == ofi_self.rules);
	ofi_self_drop();

	set("POLYCM_OFI_TRANSPORT", "iwarp");
	ofi_self_fabric(other, sizeof(other));
	assert_string_not_equal(name, other);
	assert_memory_not_equal(first, ofi_self.host, sizeof(first));
	assert_true(rules != ofi_self.rules);
	ofi_self_drop();
}

/* What we say can be read by who we say it to. */
static void our_hello(void **state)
{
	static struct ofi_hello hello, decoded;
	static uint8_t bytes[OFI_HELLO_MAX];
	const struct ofi_want want = { .kind = OFI_WANT_SLOT, .slot = 9 };
	unsigned int version;
	uint64_t token;
	size_t len;

	(void)state;
	ofi_self_number(ofi_self.device);
	ofi_self_hello(&hello, &want);
	len = ofi_hello_encode(&hello, bytes);
	assert_int_equal(ofi_hello_decode(bytes, len, &decoded, &version), 0);
	assert_int_equal(decoded.want.slot, 9);
	assert_int_equal(decoded.ports.num_ports, 1);
	assert_int_equal(decoded.ports.num_addresses, 1);
	assert_memory_equal(decoded.ports.ports[0].mac, "\x02\xf1\x0a\x00\x00\x01", 6);
	token = decoded.token;
	ofi_self_hello(&decoded, NULL);
	assert_int_equal(decoded.want.kind, OFI_WANT_ANY);
	assert_memory_not_equal(decoded.nonce, hello.nonce, OFI_NONCE);
	assert_true(decoded.token == token);
	ofi_self_renew();
	ofi_self_hello(&decoded, NULL);
	assert_true(decoded.token != token);
}

#define SELF(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SELF(addresses),
		SELF(nothing_set),
		SELF(transports),
		SELF(ports),
		SELF(hosts),
		SELF(too_many_hosts),
		SELF(key_files),
		SELF(the_host_is_one_for_user_transport_gate_and_network),
		OFI_WORLD(our_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
