/* SPDX-License-Identifier: BSD-2-Clause */
/* test_sysfs.c - what programs find of simulated devices in /sys, by calls of the C library. */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transfer.h"

#define CLASS "/sys/class/infiniband"
#define VERBS "/sys/class/infiniband_verbs"

static const char *path_of(const char *device, const char *file)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), CLASS "/%s%s%s", device, *file ? "/" : "", file);
	return path;
}

/* The content without its newline; NULL with errno. */
static const char *content(const char *path)
{
	static char text[8192];
	ssize_t len;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0)
		return NULL;
	len = read(fd, text, sizeof(text) - 1);
	assert_true(len > 0);
	assert_int_equal(text[len - 1], '\n');
	text[len - 1] = '\0';
	assert_int_equal(close(fd), 0);
	return text;
}

static const char *has(const char *device, const char *file)
{
	return content(path_of(device, file));
}

static uint64_t number(const char *device, const char *file)
{
	const char *text = has(device, file);

	assert_non_null(text);
	return strtoull(text, NULL, 0);
}

/* How many names a folder has. */
static unsigned int entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	unsigned int num = 0;

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		num += entry->d_name[0] != '.';
	closedir(dir);
	return num;
}

/* The device of the client's node. */
static const char *client_device(const struct pair *pair)
{
	return pair->client->verbs->device->name;
}

/* ------------------------------------------------------------------------
 * What is there.
 */

static void verbs_and_files_agree(void **state)
{
	(void)state;
	for (enum transport transport = 0; transport < NUM_TRANSPORTS; transport++) {
		struct ibv_device_attr attr;
		struct ibv_port_attr port;
		struct pair pair;
		const char *device;
		char guid[24];
		uint64_t id;

		pair_open_resolved(&pair, transport);
		device = client_device(&pair);
		assert_int_equal(ibv_query_device(pair.client->verbs, &attr), 0);
		assert_int_equal(ibv_query_port(pair.client->verbs, 1, &port), 0);
		id = be64toh(attr.node_guid);
		snprintf(guid, sizeof(guid), "%04x:%04x:%04x:%04x", (unsigned int)(id >> 48),
			 (unsigned int)(id >> 32 & 0xffff), (unsigned int)(id >> 16 & 0xffff),
			 (unsigned int)(id & 0xffff));
		assert_string_equal(has(device, "node_guid"), guid);
		assert_string_equal(has(device, "fw_ver"), attr.fw_ver);
		assert_string_equal(has(device, "node_type"), transport == IWARP ? "4: RNIC" : "1: CA");
		assert_string_equal(has(device, "ports/1/state"), "4: ACTIVE");
		assert_string_equal(has(device, "ports/1/phys_state"), "5: LinkUp");
		assert_string_equal(has(device, "ports/1/link_layer"),
				    transport == IB ? "InfiniBand" : "Ethernet");
		assert_int_equal(number(device, "ports/1/lid"), port.lid);
		assert_int_equal(number(device, "ports/1/cap_mask"), port.port_cap_flags);
		assert_int_equal(entries(path_of(device, "ports/1/gids")), port.gid_tbl_len);
		assert_int_equal(entries(path_of(device, "ports/1/gid_attrs/types")), port.gid_tbl_len);
		assert_int_equal(entries(path_of(device, "ports/1/pkeys")), port.pkey_tbl_len);
		assert_int_equal(entries(path_of(device, "ports")), attr.phys_port_cnt);
		assert_int_equal(entries(path_of(device, "ports/1/counters")),
				 transport == IWARP ? 0 : 21);
		assert_int_equal(entries(path_of(device, "ports/1/hw_counters")), 16);
		pair_close(&pair);
	}
}

static void a_card_and_a_node_stand_behind_a_device(void **state)
{
	struct ibv_device **list;
	char path[PATH_MAX];
	struct pair pair;
	struct stat st;
	unsigned int num;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	for (num = 0; list[num]; num++) {
		const char *device = list[num]->name;

		assert_int_equal(entries(path_of(device, "device/infiniband")), 1);
		assert_int_equal(access(path_of(device, ""), R_OK), 0);
		snprintf(path, sizeof(path), "device/infiniband/%s/node_guid", device);
		assert_non_null(has(device, path));
		assert_string_equal(has(device, "device/vendor"), "0xffff");
		assert_int_equal(entries(path_of(device, "device/net")), 1);
		snprintf(path, sizeof(path), "%s/ibdev", list[num]->dev_path);
		assert_string_equal(content(path), device);
		snprintf(path, sizeof(path), "/dev/infiniband/%s", list[num]->dev_name);
		assert_int_equal(stat(path, &st), 0);
		snprintf(path, sizeof(path), "%s/dev", list[num]->dev_path);
		assert_int_equal(strtoul(strchr(content(path), ':') + 1, NULL, 10), st.st_rdev & 0xff);
	}
	assert_int_equal(num, 2);
	assert_int_equal(entries(CLASS), 2);
	assert_int_equal(entries(VERBS), 3);
	assert_string_equal(content(VERBS "/abi_version"), "6");
	ibv_free_device_list(list);
	pair_close(&pair);
}

static void entries_without_a_gid_cannot_be_read(void **state)
{
	struct pair pair;
	const char *device;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	device = client_device(&pair);
	assert_string_equal(has(device, "ports/1/gids/63"), "0000:0000:0000:0000:0000:0000:0000:0000");
	assert_int_equal(access(path_of(device, "ports/1/gid_attrs/types/63"), F_OK), 0);
	assert_errno(open(path_of(device, "ports/1/gid_attrs/types/63"), O_RDONLY), EINVAL);
	assert_errno(open(path_of(device, "ports/1/gid_attrs/types/64"), O_RDONLY), ENOENT);
	assert_string_equal(has(device, "ports/1/gid_attrs/types/1"), "RoCE v2");
	assert_string_equal(has(device, "ports/1/gid_attrs/ndevs/1"), "eth1");
	pair_close(&pair);
}

static void nothing_can_be_written(void **state)
{
	struct pair pair;
	const char *device;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	device = client_device(&pair);
	assert_errno(open(path_of(device, "node_desc"), O_WRONLY), EACCES);
	assert_errno(open(path_of(device, "node_desc"), O_RDWR | O_CREAT, 0600), EACCES);
	assert_errno(open(path_of(device, "other"), O_RDWR | O_CREAT, 0600), EACCES);
	assert_null(fopen(path_of(device, "node_desc"), "w"));
	assert_int_equal(errno, EACCES);
	assert_errno(open(path_of(device, "other"), O_RDONLY), ENOENT);
	assert_errno(open(path_of(device, "node_desc/other"), O_RDONLY), ENOTDIR);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * Ways to get there.
 */

static unsigned int visited;

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	assert_int_equal(strncmp(path, CLASS, strlen(CLASS)), 0);
	assert_int_equal(path[ftw->base - 1], '/');
	visited++;
	return 0;
}

static void paths_do_not_lead_elsewhere(void **state)
{
	char path[PATH_MAX], *real;
	struct dirent **list;
	struct pair pair;
	const char *device;
	struct stat st;
	ssize_t len;
	glob_t found;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	device = client_device(&pair);
	assert_int_equal(lstat(path_of(device, ""), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	len = readlink(path_of(device, ""), path, sizeof(path) - 1);
	assert_true(len > 0);
	path[len] = '\0';
	assert_int_equal(strncmp(path, "../../devices/pciffff:00/", 25), 0);
	real = realpath(path_of(device, ""), NULL);
	assert_non_null(real);
	assert_string_equal(real + 5, path + 6);
	assert_int_equal(stat(real, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	free(real);
	assert_null(realpath(path_of(device, "other"), NULL));
	assert_int_equal(errno, ENOENT);

	assert_int_equal(scandir(CLASS, &list, NULL, alphasort), 4);	/* with . and .. */
	for (int i = 0; i < 4; i++)
		free(list[i]);
	free(list);
	assert_int_equal(glob(CLASS "/*/ports/1/gids/[01]", 0, NULL, &found), 0);
	assert_int_equal(found.gl_pathc, 4);
	assert_int_equal(strncmp(found.gl_pathv[0], CLASS "/", strlen(CLASS) + 1), 0);
	globfree(&found);
	assert_int_equal(nftw(path_of(device, "ports/"), visit, 8, FTW_PHYS), 0);
	assert_true(visited > 200);
	assert_int_equal(access(CLASS "/../net", F_OK), access("/sys/class/net", F_OK));
	pair_close(&pair);
}

/* UCX's tests look for the device of an interface there. */
static void interfaces_lead_to_their_devices(void **state)
{
	struct pair pair;
	char path[PATH_MAX];

	(void)state;
	pair_open_resolved(&pair, IB);
	assert_non_null(realpath("/sys/class/net/eth0/device", path));
	assert_int_equal(strncmp(path, "/sys/devices/pciffff:00/", 24), 0);
	assert_int_equal(entries("/sys/class/net/eth0/device/infiniband"), 1);
	assert_int_equal(access("/sys//class/net/./eth0/device/net/eth0/type", R_OK), 0);
	assert_int_equal(access("/sys/class/net/nothing0/device", F_OK), -1);
	assert_int_equal(errno, ENOENT);
	pair_close(&pair);
}

/* Above /sys is the host's root folder. */
static void paths_lead_out_and_back(void **state)
{
	struct pair pair;
	struct stat root, st;
	char path[PATH_MAX];

	(void)state;
	pair_open_resolved(&pair, ROCE);
	assert_int_equal(stat("/", &root), 0);
	assert_int_equal(stat(CLASS "/../../..", &st), 0);
	assert_true(st.st_dev == root.st_dev && st.st_ino == root.st_ino);
	assert_int_equal(access(CLASS "/../../../.././proc/self/exe", F_OK), 0);
	assert_int_equal(access(CLASS "/../../../nothing", F_OK), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(entries(CLASS "/../../../.././sys/class/infiniband"), 2);
	assert_non_null(realpath(CLASS "/../../..", path));
	assert_string_equal(path, "/");
	pair_close(&pair);
}

static void nothing_is_below_a_file(void **state)
{
	static const char *const below[] = { "node_guid/", "node_guid/..", "node_guid/x" };
	struct pair pair;
	struct stat st;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		assert_int_equal(stat(path_of(client_device(&pair), below[i]), &st), -1);
		assert_int_equal(errno, ENOTDIR);
		assert_null(realpath(path_of(client_device(&pair), below[i]), NULL));
		assert_int_equal(errno, ENOTDIR);
	}
	pair_close(&pair);
}

static void folders_can_be_gone_to(void **state)
{
	char before[PATH_MAX], path[PATH_MAX];
	struct pair pair;
	struct stat st;
	int fd, file;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	fd = open(path_of(client_device(&pair), "ports"), O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(fstatat(fd, "1/gids", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode));
	file = openat(fd, "1/gids/0", O_RDONLY);
	assert_true(file >= 0);
	close(file);
	assert_int_equal(faccessat(fd, "2", F_OK, 0), -1);

	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(fchdir(fd), 0);
	assert_string_equal(content("1/state"), "4: ACTIVE");
	assert_int_equal(chdir("1/gid_attrs"), 0);
	assert_int_equal(entries("types"), 64);
	assert_non_null(getcwd(path, sizeof(path)));
	assert_int_equal(strncmp(path, "/sys/devices/pciffff:00/", 24), 0);
	assert_int_equal(chdir(before), 0);
	close(fd);
	pair_close(&pair);
}

/* As Python's subprocess does where the child is to begin in another folder. */
static void a_child_of_vfork_leaves_the_parent_its_folder(void **state)
{
	struct pair pair;
	int fd, status;
	pid_t pid;

	(void)state;
	pair_open_resolved(&pair, ROCE);
	fd = open(path_of(client_device(&pair), "ports/1"), O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	pid = vfork();
	if (!pid)
		_exit(chdir(CLASS) != 0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_non_null(has(client_device(&pair), "fw_ver"));
	assert_int_equal(faccessat(fd, "state", F_OK, 0), 0);
	close(fd);
	pair_close(&pair);
}

/* ------------------------------------------------------------------------
 * What happens.
 */

static void counters_grow(void **state)
{
	(void)state;
	for (enum transport transport = 0; transport < NUM_TRANSPORTS; transport++) {
		uint64_t packets, words = 0;
		struct transfer x;
		const char *client, *server;

		transfer_open(&x, transport, NULL);
		client = x.client.id->verbs->device->name;
		server = x.server.id->verbs->device->name;
		packets = number(client, "ports/1/hw_counters/sent_pkts");
		assert_true(packets > 0);	/* of the connection manager */
		if (transport != IWARP)
			words = number(client, "ports/1/counters/port_xmit_data");
		transfer_recv(&x.server, 1, 0, TRANSFER_SIZE);
		transfer_send(&x.client, 2, 0, 65536);
		(void)transfer_received(&x.server, 1, IBV_WC_SUCCESS);
		(void)transfer_sent(&x.client, 2, IBV_WC_SUCCESS);
		/* One for each MTU, of 4096 bytes at most. */
		assert_true(number(client, "ports/1/hw_counters/sent_pkts") >= packets + 16);
		assert_true(number(server, "ports/1/hw_counters/rcvd_pkts") >= packets + 16);
		assert_int_equal(number(client, "ports/1/hw_counters/rdma_sends"), 1);
		assert_int_equal(number(server, "ports/1/hw_counters/rdma_recvs"), 1);
		if (transport != IWARP) {
			words = number(client, "ports/1/counters/port_xmit_data") - words;
			assert_in_range(words, 65536 / 4, 65536 / 4 + 65536 / 8);
			assert_int_equal(number(client, "ports/1/counters/port_xmit_packets"),
					 number(client, "ports/1/counters/unicast_xmit_packets"));
		}
		transfer_close(&x);
	}
}

/* Those of a connection that has to try again. */
static void errors_are_counted(void **state)
{
	struct transfer x;
	const char *client, *server;

	(void)state;
	transfer_open(&x, ROCE, NULL);
	client = x.client.id->verbs->device->name;
	server = x.server.id->verbs->device->name;
	assert_int_equal(number(server, "ports/1/hw_counters/send_rnr_err"), 0);
	transfer_send(&x.client, 2, 0, 10);
	assert_int_equal(polycm_sim_advance(2000), 0);
	transfer_recv(&x.server, 1, 0, 10);
	(void)transfer_sent(&x.client, 2, IBV_WC_SUCCESS);
	(void)transfer_received(&x.server, 1, IBV_WC_SUCCESS);
	assert_int_equal(number(server, "ports/1/hw_counters/send_rnr_err"), 1);
	assert_int_equal(number(client, "ports/1/hw_counters/rcvd_rnr_err"), 1);
	assert_int_equal(number(client, "ports/1/hw_counters/completer_retry_err"), 1);
	transfer_close(&x);
}

/* Do it now, to the server's node. */
static void happen(struct pair *pair, enum polycm_sim_action action)
{
	struct polycm_sim_fault_rule rule = {
		.size = sizeof(rule),
		.action = action,
		.on = pair->server_node,
		.from_ns = pair_now(),
	};
	struct polycm_sim_fault *fault;

	assert_int_equal(polycm_sim_fault_add(&rule, &fault), 0);
	assert_int_equal(polycm_sim_advance(0), 0);
	assert_int_equal(polycm_sim_fault_remove(fault), 0);
}

static void files_show_what_happens(void **state)
{
	char device[64];
	struct pair pair;
	int folder, fd;
	char text[16] = "";

	(void)state;
	pair_open_resolved(&pair, ROCE);
	snprintf(device, sizeof(device), "%s", pair.listener->verbs->device->name);
	folder = open(path_of(device, "ports/1"), O_RDONLY | O_DIRECTORY);
	assert_true(folder >= 0);
	happen(&pair, POLYCM_SIM_PORT_DOWN);
	assert_string_equal(has(device, "ports/1/state"), "1: DOWN");
	assert_string_equal(has(device, "ports/1/phys_state"), "3: Disabled");
	assert_int_equal(number(device, "ports/1/counters/link_downed"), 1);
	fd = openat(folder, "state", O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text) - 1), 8);
	assert_string_equal(text, "1: DOWN\n");
	close(fd);
	close(folder);
	happen(&pair, POLYCM_SIM_PORT_UP);
	assert_string_equal(has(device, "ports/1/state"), "4: ACTIVE");
	happen(&pair, POLYCM_SIM_REMOVE_DEVICE);
	assert_null(has(device, "ports/1/state"));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(entries(CLASS), 1);
	pair_close(&pair);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_and_files_agree),
		cmocka_unit_test(a_card_and_a_node_stand_behind_a_device),
		cmocka_unit_test(entries_without_a_gid_cannot_be_read),
		cmocka_unit_test(nothing_can_be_written),
		cmocka_unit_test(paths_do_not_lead_elsewhere),
		cmocka_unit_test(interfaces_lead_to_their_devices),
		cmocka_unit_test(paths_lead_out_and_back),
		cmocka_unit_test(nothing_is_below_a_file),
		cmocka_unit_test(folders_can_be_gone_to),
		cmocka_unit_test(a_child_of_vfork_leaves_the_parent_its_folder),
		cmocka_unit_test(counters_grow),
		cmocka_unit_test(errors_are_counted),
		cmocka_unit_test(files_show_what_happens),
	};

	return cmocka_run_group_tests(tests, pair_group_setup, NULL);
}
