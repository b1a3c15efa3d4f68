/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * system_net.c - a network of their own for the members: an interface for each device, with its
 * addresses, and nothing outside.  All of it is one network namespace, whose kernel connects the
 * nodes' addresses with each other by loopback.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "system.h"

#define LOOPBACK 1	/* its number in each namespace */
#define RTO_MS 60000u	/* before TCP sends again, or asks for room: nothing is lost here */
#define AWAIT_NS 100000
#define AWAIT_TIMES 50000u	/* a busy machine may take long */

/* A message to the kernel. */
struct request {
	struct nlmsghdr header;
	char rest[512];
};

static void begin(struct request *request, unsigned int type, unsigned int flags,
		  const void *data, size_t len)
{
	*request = (struct request){ .header = {
		.nlmsg_len = (uint32_t)NLMSG_LENGTH(len), .nlmsg_type = (uint16_t)type,
		.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
	} };
	memcpy(NLMSG_DATA(&request->header), data, len);
}

static struct rtattr *put(struct request *request, unsigned int type, const void *data, size_t len)
{
	struct rtattr *attribute = (struct rtattr *)
		((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));

	attribute->rta_type = (uint16_t)type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(attribute), data, len);
	request->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(request->header.nlmsg_len) +
					       RTA_ALIGN(attribute->rta_len));
	return attribute;
}

/* Whatever was put since belongs into that attribute. */
static void close_in(struct request *request, struct rtattr *attribute)
{
	attribute->rta_len = (uint16_t)((char *)request + request->header.nlmsg_len -
					(char *)attribute);
}

/* 0 or a negative errno. */
static int ask(int fd, struct request *request)
{
	struct { struct nlmsghdr header; struct nlmsgerr error; char rest[1024]; } answer;

	if (send(fd, request, request->header.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < (ssize_t)NLMSG_LENGTH(sizeof(answer.error)))
		return -errno;
	return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int set_up(int fd, int interface)
{
	const struct ifinfomsg up = { .ifi_index = interface, .ifi_flags = IFF_UP,
				      .ifi_change = IFF_UP };
	struct request request;

	begin(&request, RTM_NEWLINK, 0, &up, sizeof(up));
	return ask(fd, &request);
}

/* The other end of a pair, which nobody uses, but which must be there and be up. */
static void put_peer(struct request *request, const char *name, const unsigned char mac[6])
{
	const struct ifinfomsg any = { .ifi_index = 0 };
	struct rtattr *data = put(request, IFLA_INFO_DATA, NULL, 0);
	struct rtattr *peer = put(request, VETH_INFO_PEER, &any, sizeof(any));

	put(request, IFLA_IFNAME, name, strlen(name) + 1);
	put(request, IFLA_ADDRESS, mac, 6);
	close_in(request, peer);
	close_in(request, data);
}

/* Its number, or a negative errno.  num: so many there are already. */
static int make_interface(int fd, const char *name, const char *kind, unsigned int num)
{
	const struct ifinfomsg any = { .ifi_index = 0 };
	/* Not random ones. */
	const unsigned char high = (unsigned char)(num >> 8), low = (unsigned char)num;
	const unsigned char mac[6] = { 2, 0, 0, 0, high, low }, others[6] = { 2, 0, 0, 1, high, low };
	char peer[IFNAMSIZ];
	struct request request;
	struct rtattr *info;
	int err;

	if (strlen(name) >= IFNAMSIZ)
		return -EINVAL;
	snprintf(peer, sizeof(peer), "peer%u", num);
	begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &any, sizeof(any));
	put(&request, IFLA_IFNAME, name, strlen(name) + 1);
	put(&request, IFLA_ADDRESS, mac, sizeof(mac));
	info = put(&request, IFLA_LINKINFO, NULL, 0);
	put(&request, IFLA_INFO_KIND, kind, strlen(kind));
	if (!strcmp(kind, "veth"))
		put_peer(&request, peer, others);
	close_in(&request, info);
	err = ask(fd, &request);
	if (!err && !strcmp(kind, "veth"))
		err = set_up(fd, (int)if_nametoindex(peer));
	if (!err)
		err = set_up(fd, (int)if_nametoindex(name));
	return err ? err : (int)if_nametoindex(name);
}

/* Without a route to others of its network: there are none, and who looks for one is told at once. */
static int add_address(int fd, int interface, const struct system_address *address)
{
	const struct ifaddrmsg message = {
		.ifa_family = address->is_ipv6 ? AF_INET6 : AF_INET,
		.ifa_prefixlen = (unsigned char)address->prefix_len,
		.ifa_index = (unsigned int)interface,
	};
	const uint32_t flags = IFA_F_NODAD | IFA_F_NOPREFIXROUTE | IFA_F_PERMANENT;
	const size_t len = address->is_ipv6 ? 16 : 4;
	struct request request;

	begin(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &message, sizeof(message));
	put(&request, IFA_LOCAL, system_address_bytes(address), len);
	put(&request, IFA_ADDRESS, system_address_bytes(address), len);
	put(&request, IFA_FLAGS, &flags, sizeof(flags));
	return ask(fd, &request);
}

/*
 * The kernel gives an IPv6 address its route later, in real time: a program that began before would
 * find it unreachable.
 */
static int await_ipv6(const struct system_address *address)
{
	const struct timespec moment = { .tv_nsec = AWAIT_NS };
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	memcpy(&to.sin6_addr, system_address_bytes(address), sizeof(to.sin6_addr));
	for (unsigned int i = 0;; i++) {
		err = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? -errno : 0;
		if (err != -ENETUNREACH || i == AWAIT_TIMES)
			break;
		nanosleep(&moment, NULL);
	}
	close(fd);
	return err;
}

/*
 * To that address of ours: who receives acknowledges at once, not after up to 40 ms of real time, and
 * who sends does not try again after 200 ms, in which a busy machine may have done nothing.  IPv4;
 * what the kernel itself has for IPv6 cannot be replaced.
 */
static int use_no_timers(int fd, const void *bytes, unsigned char prefix_len,
			const void *source)
{
	const struct rtmsg message = {
		.rtm_family = AF_INET, .rtm_dst_len = prefix_len, .rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_KERNEL, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL,
	};
	const uint32_t loopback = LOOPBACK, on = 1, rto_ms = RTO_MS, locked = 1u << RTAX_RTO_MIN;
	struct request request;
	struct rtattr *metrics;

	begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &message, sizeof(message));
	put(&request, RTA_DST, bytes, 4);
	put(&request, RTA_PREFSRC, source, 4);
	put(&request, RTA_OIF, &loopback, sizeof(loopback));
	metrics = put(&request, RTA_METRICS, NULL, 0);
	put(&request, RTAX_QUICKACK, &on, sizeof(on));
	put(&request, RTAX_RTO_MIN, &rto_ms, sizeof(rto_ms));
	put(&request, RTAX_LOCK, &locked, sizeof(locked));
	close_in(&request, metrics);
	return ask(fd, &request);
}

/* Of this namespace.  False: it cannot be set; true also if the kernel does not have it. */
static bool set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_set = fd < 0 || write(fd, value, strlen(value)) == (ssize_t)strlen(value);

	if (fd >= 0)
		close(fd);
	return is_set;
}

static void change_settings(void)
{
	/* The kernel's own addresses come later, in real time. */
	if (!set("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1"))
		tool_error("run: interfaces have addresses of their own: %m");
	/* What it has measured on a connection, in real time, is nothing to the next one. */
	if (!set("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"))
		tool_error("run: TCP connections depend on those before: %m");
	/* Another one may send at a pace, in real time, as bbr does. */
	if (!set("/proc/sys/net/ipv4/tcp_congestion_control", "reno"))
		tool_error("run: TCP may send at a pace of real time: %m");
	/*
	 * Without it a window is at most 64 KiB, and a receiver has room for all that it asks for.  Of
	 * a larger one the kernel drops what does not fit after all, and it is sent again in real time.
	 */
	if (!set("/proc/sys/net/ipv4/tcp_window_scaling", "0"))
		tool_error("run: TCP may send again in real time: %m");
}

/* The interface of that name; loopback where the kernel has no others. */
static int find_interface(int fd, const char *name, unsigned int *num)
{
	static const char *const kinds[] = { "dummy", "veth" };
	int number = (int)if_nametoindex(name);

	for (size_t i = 0; number <= 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		number = make_interface(fd, name, kinds[i], *num);
	if (number <= 0)
		return LOOPBACK;
	++*num;
	return number;
}

/* What a kernel says that has no IPv6, or in which it is turned off. */
static bool is_without_ipv6(int err)
{
	return err == -EOPNOTSUPP || err == -EAFNOSUPPORT || err == -EACCES;
}

int system_net_enter(const struct system *system)
{
	static const unsigned char net[4] = { 127 }, own[4] = { 127, 0, 0, 1 };
	bool without_ipv6 = false;	/* kernels can be */
	unsigned int num = 0;
	int fd, err;

	if (unshare(CLONE_NEWNET))
		return -errno;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	change_settings();
	err = set_up(fd, LOOPBACK);
	if (!err)
		err = use_no_timers(fd, net, 8, own);
	if (!err)
		err = use_no_timers(fd, own, 32, own);
	for (size_t i = 0; !err && i < system->num_addresses; i++) {
		const struct system_address *address = &system->addresses[i];
		const int interface = find_interface(fd, address->interface, &num);

		if (address->is_ipv6 && without_ipv6)
			continue;
		err = add_address(fd, interface, address);
		if (address->is_ipv6 && is_without_ipv6(err)) {
			without_ipv6 = true;
			tool_error("run: no IPv6 addresses for TCP and UDP: %s", strerror(-err));
			err = 0;
		} else if (!err && !address->is_ipv6) {
			err = use_no_timers(fd, system_address_bytes(address), 32,
						  system_address_bytes(address));
		}
	}
	for (size_t i = 0; !err && !without_ipv6 && i < system->num_addresses; i++)
		if (system->addresses[i].is_ipv6)
			err = await_ipv6(&system->addresses[i]);
	close(fd);
	return err;
}
