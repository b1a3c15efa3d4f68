/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/profile.c - see profile.h. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile.h"

#define LONGEST_LINE 4096

enum kind {
	KIND_TEXT,	/* to the end of the line */
	KIND_NUMBER,	/* 4096, 0x1000, 1000kHZ */
	KIND_CODE,	/* 1024 (3): the number in parentheses */
	KIND_LAYER,	/* InfiniBand or Ethernet */
};

/* One line of the text. */
struct key {
	const char *name;
	enum kind kind;
	size_t offset, size;	/* of the member */
	unsigned int bits;	/* that what programs see of it has; 0: as many as the member */
};

#define KEY(struct_name, text, kind, member)                                                       \
	{                                                                                          \
		text, kind, offsetof(struct struct_name, member),                                  \
			sizeof(((struct struct_name *)0)->member), 0                               \
	}
#define DEVICE(text, kind, member) KEY(sim_profile, text, kind, member)
#define LIMIT(member) KEY(sim_profile, #member, KIND_NUMBER, attr.member)
#define PORT(kind, member, bits)                                                                   \
	{                                                                                          \
		#member, kind, offsetof(struct sim_profile_port, member),                          \
			sizeof(((struct sim_profile_port *)0)->member), bits                       \
	}

static const struct key device_keys[] = {
	DEVICE("hca_id", KIND_TEXT, name),
	DEVICE("transport", KIND_CODE, transport),
	DEVICE("fw_ver", KIND_TEXT, attr.fw_ver),
	DEVICE("board_id", KIND_TEXT, board_id),
	DEVICE("atomic_cap", KIND_CODE, attr.atomic_cap),
	DEVICE("completion timestamp_mask", KIND_NUMBER, timestamp_mask),
	DEVICE("completion_timestamp_mask", KIND_NUMBER, timestamp_mask),
	DEVICE("hca_core_clock", KIND_NUMBER, core_clock_khz),
	DEVICE("num_comp_vectors", KIND_NUMBER, num_comp_vectors),
	LIMIT(vendor_id), LIMIT(vendor_part_id), LIMIT(hw_ver), LIMIT(phys_port_cnt),
	LIMIT(max_mr_size), LIMIT(page_size_cap), LIMIT(max_qp), LIMIT(max_qp_wr),
	LIMIT(device_cap_flags), LIMIT(max_sge), LIMIT(max_sge_rd), LIMIT(max_cq), LIMIT(max_cqe),
	LIMIT(max_mr), LIMIT(max_pd), LIMIT(max_qp_rd_atom), LIMIT(max_ee_rd_atom),
	LIMIT(max_res_rd_atom), LIMIT(max_qp_init_rd_atom), LIMIT(max_ee_init_rd_atom),
	LIMIT(max_ee), LIMIT(max_rdd), LIMIT(max_mw), LIMIT(max_raw_ipv6_qp),
	LIMIT(max_raw_ethy_qp), LIMIT(max_mcast_grp), LIMIT(max_mcast_qp_attach),
	LIMIT(max_total_mcast_qp_attach), LIMIT(max_ah), LIMIT(max_fmr), LIMIT(max_map_per_fmr),
	LIMIT(max_srq), LIMIT(max_srq_wr), LIMIT(max_srq_sge), LIMIT(max_pkeys),
	LIMIT(local_ca_ack_delay),
};

static const struct key port_keys[] = {
	PORT(KIND_CODE, max_mtu, 0), PORT(KIND_CODE, active_mtu, 0), PORT(KIND_LAYER, link_layer, 0),
	PORT(KIND_NUMBER, max_msg_sz, 0), PORT(KIND_NUMBER, port_cap_flags, 0),
	PORT(KIND_NUMBER, port_cap_flags2, 16), PORT(KIND_CODE, max_vl_num, 8),
	/* sysfs has a file for each entry. */
	PORT(KIND_NUMBER, gid_tbl_len, 16), PORT(KIND_NUMBER, pkey_tbl_len, 16),
	/* Newer speeds have 16 bits in a member of their own. */
	PORT(KIND_CODE, active_width, 8), PORT(KIND_CODE, active_speed, 16),
	PORT(KIND_NUMBER, subnet_timeout, 8), PORT(KIND_NUMBER, init_type_reply, 8),
};

#undef KEY
#undef DEVICE
#undef LIMIT
#undef PORT

struct reader {
	struct sim_profile *profile;
	struct sim_profile_port *port;	/* the one that lines belong to; NULL: the device */
	unsigned int line;		/* 0: the file as a whole */
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3)))
static int wrong(const struct reader *reader, const char *format, ...)
{
	va_list args;
	int len = 0;

	if (reader->line)
		len = snprintf(reader->why, reader->why_size, "line %u: ", reader->line);
	if (len < 0 || (size_t)len >= reader->why_size)
		return -EINVAL;
	va_start(args, format);
	vsnprintf(reader->why + len, reader->why_size - (size_t)len, format, args);
	va_end(args);
	return -EINVAL;
}

/* Limits are ints that are not negative, but for this one. */
static bool is_int(const struct key *key)
{
	return (!strncmp(key->name, "max_", 4) && strcmp(key->name, "max_msg_sz") != 0) ||
	       !strcmp(key->name, "num_comp_vectors");
}

static bool fits(const struct key *key, uint64_t number)
{
	unsigned int bits = key->bits ? key->bits : 8 * (unsigned int)key->size - is_int(key);

	return key->size >= sizeof(number) || !(number >> bits);
}

static void store(void *member, size_t size, uint64_t number)
{
	uint8_t byte = (uint8_t)number;
	uint32_t word = (uint32_t)number;

	if (size == sizeof(byte))
		memcpy(member, &byte, size);
	else if (size == sizeof(word))
		memcpy(member, &word, size);
	else
		memcpy(member, &number, size);
}

static bool parse_number(const char *value, uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)*value))
		return false;
	errno = 0;
	*ret_number = strtoull(value, &end, 0);
	return !errno && (!*end || isspace((unsigned char)*end) || isalpha((unsigned char)*end));
}

/* "invalid speed (0)" has one, too. */
static bool parse_code(const char *value, uint64_t *ret_number)
{
	const char *open = strrchr(value, '(');

	return open && strchr(open, ')') && isdigit((unsigned char)open[1]) &&
	       (*ret_number = strtoull(open + 1, NULL, 0), true);
}

static bool parse_layer(const char *value, uint64_t *ret_number)
{
	if (!strcmp(value, "Ethernet"))
		*ret_number = IBV_LINK_LAYER_ETHERNET;
	else if (!strcmp(value, "InfiniBand") || !strcmp(value, "IB"))
		*ret_number = IBV_LINK_LAYER_INFINIBAND;
	else
		return false;
	return true;
}

static int take(const struct reader *reader, const struct key *key, const char *value, void *base)
{
	static bool (*const parse[])(const char *value, uint64_t *ret_number) = {
		[KIND_NUMBER] = parse_number, [KIND_CODE] = parse_code, [KIND_LAYER] = parse_layer,
	};
	void *member = (char *)base + key->offset;
	uint64_t number;

	if (key->kind == KIND_TEXT) {
		if (!*value || strlen(value) >= key->size)
			return wrong(reader, "%s is empty or longer than %zu bytes", key->name,
				     key->size - 1);
		strcpy(member, value);
		return 0;
	}
	if (!parse[key->kind](value, &number))
		return wrong(reader, "%s: \"%.40s\" is not what ibv_devinfo prints", key->name, value);
	if (!fits(key, number))
		return wrong(reader, "%s: %.40s is too large", key->name, value);
	store(member, key->size, number);
	return 0;
}

static const struct key *find(const struct key *keys, size_t num, const char *name)
{
	for (size_t i = 0; i < num; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

#define NUM(keys) (sizeof(keys) / sizeof((keys)[0]))
#define FIND(keys, name) find(keys, NUM(keys), name)
#define ALL(keys) ((1ull << NUM(keys)) - 1)

static int begin_port(struct reader *reader, const char *value)
{
	uint64_t number;

	if (!parse_number(value, &number) || number != reader->profile->num_ports + 1)
		return wrong(reader, "port \"%.20s\" in place of %u", value,
			     reader->profile->num_ports + 1);
	if (number > SIM_PROFILE_PORTS)
		return wrong(reader, "port %.20s: a simulated device has %u at most", value,
			     SIM_PROFILE_PORTS);
	reader->port = &reader->profile->ports[reader->profile->num_ports++];
	reader->port->missing = ALL(port_keys);
	return 0;
}

static int take_device_line(struct reader *reader, const struct key *key, const char *value)
{
	uint64_t bit = 1ull << (key - device_keys);

	/* Tag matching has a max_sge of its own, which comes later. */
	if (!(reader->profile->missing & bit))
		return 0;
	reader->profile->missing &= ~bit;
	return take(reader, key, value, reader->profile);
}

/* Lines that no key names say nothing that the simulator shows. */
static int take_line(struct reader *reader, const char *name, const char *value)
{
	const struct key *key;

	if (!strcmp(name, "port"))
		return begin_port(reader, value);
	key = reader->port ? FIND(port_keys, name) : FIND(device_keys, name);
	if (!key)
		return 0;
	if (!reader->port)
		return take_device_line(reader, key, value);
	reader->port->missing &= ~(1ull << (key - port_keys));
	return take(reader, key, value, reader->port);
}

/* "name:  value", without the spaces around both; false: it has no colon. */
static bool split(char *line, char **ret_name, char **ret_value)
{
	char *colon = strchr(line, ':'), *end = line + strlen(line);

	if (!colon)
		return false;
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	*colon = '\0';
	*ret_name = line + strspn(line, " \t");
	*ret_value = colon + 1 + strspn(colon + 1, " \t");
	return true;
}

static bool has_mtus(const struct sim_profile_port *port)
{
	return port->active_mtu >= IBV_MTU_256 && port->active_mtu <= port->max_mtu &&
	       port->max_mtu <= IBV_MTU_4096;
}

static bool is_missing(const struct sim_profile *profile, const struct key *key)
{
	return profile->missing >> (key - device_keys) & 1;
}

/* What ibv_devinfo prints with -v only. */
static bool has_limits(const struct sim_profile *profile)
{
	for (const struct key *key = device_keys; key < device_keys + NUM(device_keys); key++)
		if (!strncmp(key->name, "max_", 4) && !is_missing(profile, key))
			return true;
	return false;
}

/* Without it no program could do anything. */
static const char *limit_of_none(const struct sim_profile *profile)
{
	static const char *const names[] = { "max_qp", "max_qp_wr", "max_sge", "max_cq", "max_cqe",
					     "max_mr", "max_mr_size", "max_pd" };
	static const char zero[sizeof(uint64_t)];
	const struct key *key;

	for (size_t i = 0; i < NUM(names); i++) {
		key = FIND(device_keys, names[i]);
		if (!is_missing(profile, key) &&
		    !memcmp((const char *)profile + key->offset, zero, key->size))
			return key->name;
	}
	return NULL;
}

static int check(struct reader *reader)
{
	const struct sim_profile *profile = reader->profile;

	if (!profile->name[0])
		return wrong(reader, "no line begins with hca_id:, as those of ibv_devinfo -v");
	if (!profile->num_ports || !has_limits(profile))
		return wrong(reader, "the ports or the limits are missing; ibv_devinfo needs -v");
	if (limit_of_none(profile))
		return wrong(reader, "%s is 0", limit_of_none(profile));
	if (profile->num_ports != profile->attr.phys_port_cnt)
		return wrong(reader, "%u ports, phys_port_cnt is %u", profile->num_ports,
			     profile->attr.phys_port_cnt);
	for (unsigned int i = 0; i < profile->num_ports; i++)
		if (!has_mtus(&profile->ports[i]))
			return wrong(reader, "port %u: max_mtu or active_mtu is missing or wrong",
				     i + 1);
	if (profile->transport > IBV_TRANSPORT_IWARP)
		return wrong(reader, "the transport is neither InfiniBand nor iWARP");
	return 0;
}

static int read_device(FILE *file, struct reader *reader)
{
	char line[LONGEST_LINE], *name, *value;
	int r;

	while (fgets(line, sizeof(line), file)) {
		reader->line++;
		if (line[0] == '#' || !split(line, &name, &value))
			continue;
		/* The next device. */
		if (!strcmp(name, "hca_id") && reader->profile->name[0])
			break;
		r = take_line(reader, name, value);
		if (r < 0)
			return r;
	}
	reader->line = 0;
	return ferror(file) ? -EIO : check(reader);
}

/* A folder has the text in a file of that name, and perhaps a copy of the device's in /sys. */
static int open_text(const char *path, struct sim_profile *profile, FILE **ret_file)
{
	char text[sizeof(profile->path) + 16];
	struct stat st;
	int r = stat(path, &st);

	if (r < 0)
		return -errno;
	if (strlen(path) >= sizeof(profile->path) - 16)
		return -ENAMETOOLONG;
	strcpy(profile->path, path);
	snprintf(text, sizeof(text), "%s%s", path, S_ISDIR(st.st_mode) ? "/ibv_devinfo" : "");
	if (S_ISDIR(st.st_mode))
		snprintf(profile->sysfs, sizeof(profile->sysfs), "%s/sysfs", path);
	if (profile->sysfs[0] && access(profile->sysfs, F_OK) < 0)
		profile->sysfs[0] = '\0';
	*ret_file = fopen(text, "re");
	return *ret_file ? 0 : -errno;
}

int sim_profile_read(const char *path, struct sim_profile *ret_profile, char *ret_why,
		     size_t why_size)
{
	struct reader reader = { .profile = ret_profile, .why = ret_why, .why_size = why_size };
	FILE *file = NULL;
	int r;

	*ret_profile = (struct sim_profile){ .missing = ALL(device_keys) };
	if (why_size)
		*ret_why = '\0';
	r = open_text(path, ret_profile, &file);
	if (r == -ENOENT && ret_profile->path[0])
		snprintf(ret_why, why_size, "the folder has no file ibv_devinfo");
	if (r < 0)
		return r;
	r = read_device(file, &reader);
	fclose(file);
	return r;
}

/* It is a part of attr. */
static bool is_attribute(const struct key *key)
{
	size_t first = offsetof(struct sim_profile, attr);

	return key->offset >= first && key->offset < first + sizeof(struct ibv_device_attr);
}

void sim_profile_apply(const struct sim_profile *profile, struct ibv_device_attr *attr)
{
	for (const struct key *key = device_keys; key < device_keys + NUM(device_keys); key++)
		if (is_attribute(key) && !is_missing(profile, key))
			memcpy((char *)attr + key->offset - offsetof(struct sim_profile, attr),
			       (const char *)profile + key->offset, key->size);
}

static void append(char *text, size_t size, const char *name)
{
	size_t len = strlen(text);

	snprintf(text + len, size - len, "%s%s", len ? ", " : "", name);
}

/* Two lines are not printed of a device without SRQs, one of a device without FMRs. */
static bool is_expected(const struct sim_profile *profile, const struct key *key)
{
	return is_attribute(key) && strcmp(key->name, "max_map_per_fmr") != 0 &&
	       (profile->attr.max_srq || is_missing(profile, FIND(device_keys, "max_srq")) ||
		strncmp(key->name, "max_srq_", 8) != 0);
}

void sim_profile_missing(const struct sim_profile *profile, char *ret_text, size_t size)
{
	*ret_text = '\0';
	for (const struct key *key = device_keys; key < device_keys + NUM(device_keys); key++)
		if (is_expected(profile, key) && is_missing(profile, key))
			append(ret_text, size, key->name);
	for (size_t i = 0; i < NUM(port_keys); i++)
		if (profile->ports[0].missing >> i & 1)
			append(ret_text, size, port_keys[i].name);
}

bool sim_profile_fits(const struct sim_profile *profile, const struct polycm_transport *rules)
{
	return (uint32_t)rules->transport_type == profile->transport &&
	       (profile->transport == IBV_TRANSPORT_IWARP ||
		rules->link_layer == profile->ports[0].link_layer);
}

const char *sim_profile_transport(const struct sim_profile *profile)
{
	if (profile->transport == IBV_TRANSPORT_IWARP)
		return "iwarp";
	return profile->ports[0].link_layer == IBV_LINK_LAYER_ETHERNET ? "roce" : "ib";
}
