/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap.c - the capture file.
 *
 * The first packet decides its link type: Ethernet, or ERF on a fabric with
 * InfiniBand; ERF can contain Ethernet's frames, too.  Processes of one fabric
 * share a file.  Each adds the packets that it sends, with one write each, and
 * those that come from a process with another file or none.  A process that
 * opens the file while no other process writes it truncates it.
 */
#include "config.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/soft/fabric/remote.h"
#include "providers/soft/shm/segment.h"
#include "providers/soft/trace/trace.h"
#include "providers/common/write_error.h"
#include "pcap_crc.h"
#include "pcap_internal.h"

#define SNAPLEN 65535
#define BUFFER (1u << 17)	/* more than any packet: each is written at once */

/* ERF, as DLT_ERF has it: types, and the bit that says that lengths vary. */
#define ERF_HEADER 16u
#define ERF_TYPE_ETH 2u
#define ERF_TYPE_INFINIBAND 21u
#define ERF_VARYING 0x04u
#define ERF_ETH_PAD 2u
#define FCS_SIZE 4u

bool sim_pcap_on;

static void sent(const struct sim_packet *packet, unsigned int to_slot);
static void received(const struct sim_packet *packet);

static struct sim_tap tap = { .sent = sent, .received = received };

/*
 * libpcap is loaded when it is needed: it brings a dozen libraries along, which
 * would be in every program.
 */
static struct {
	void *loaded;
	pcap_t *(*open)(int linktype, int snaplen, u_int precision);
	pcap_dumper_t *(*append)(pcap_t *handle, const char *path);
	FILE *(*file)(pcap_dumper_t *dumper);
	void (*dump)(u_char *dumper, const struct pcap_pkthdr *header, const u_char *bytes);
	int (*flush)(pcap_dumper_t *dumper);
	void (*end)(pcap_dumper_t *dumper);
	char *(*error)(pcap_t *handle);
	void (*close)(pcap_t *handle);
} lib;

static struct {
	int fd;			/* the file, and the lock on it */
	int link_type;		/* DLT_*; -1: not decided yet */
	bool complained;
	uint64_t id;		/* of the file, for other processes */
	char path[256];		/* for people */
	pcap_t *handle;
	pcap_dumper_t *dumper;
} capture = {
	.fd = -1,
};

/* ------------------------------------------------------------------------
 * Opening and closing.
 */

static int load(void)
{
	static const char *const names[] = { "libpcap.so.0.8", "libpcap.so.1", "libpcap.so" };
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
		{ "pcap_open_dead_with_tstamp_precision", &lib.open },
		{ "pcap_dump_open_append", &lib.append },
		{ "pcap_dump_file", &lib.file },
		{ "pcap_dump", &lib.dump },
		{ "pcap_dump_flush", &lib.flush },
		{ "pcap_dump_close", &lib.end },
		{ "pcap_geterr", &lib.error },
		{ "pcap_close", &lib.close },
	};
	void *loaded = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !loaded && !lib.loaded; i++)
		loaded = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!loaded)
		return lib.loaded ? 0 : sim_refuse(-ENOENT, "libpcap, for captures: %s", dlerror());
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *function = dlsym(loaded, wanted[i].name);

		if (!function) {
			dlclose(loaded);
			return sim_refuse(-ENOENT, "libpcap has no %s", wanted[i].name);
		}
		memcpy(wanted[i].function, &function, sizeof(function));
	}
	lib.loaded = loaded;
	return 0;
}

static bool has_infiniband(void)
{
	for (struct sim_node *node = sim_first_node(); node; node = node->next)
		for (struct sim_device *device = node->devices; device; device = device->next)
			if (device->rules->link_layer == IBV_LINK_LAYER_INFINIBAND)
				return true;
	return false;
}

/* The header goes into an empty file; one that is there must be the same. */
static int begin_dump(void)
{
	char path[32];

	capture.link_type = has_infiniband() ? DLT_ERF : DLT_EN10MB;
	capture.handle = lib.open(capture.link_type, SNAPLEN, PCAP_TSTAMP_PRECISION_NANO);
	if (!capture.handle)
		return -ENOMEM;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", capture.fd);
	capture.dumper = lib.append(capture.handle, path);
	if (!capture.dumper) {
		sim_core->log(POLYCM_LOG_WARN, NULL, "the capture cannot be written: %s",
			      lib.error(capture.handle));
		return -EINVAL;
	}
	if (lib.flush(capture.dumper) < 0)
		return -errno;
	setvbuf(lib.file(capture.dumper), NULL, _IOFBF, BUFFER);
	(void)fcntl(fileno(lib.file(capture.dumper)), F_SETFD, FD_CLOEXEC);
	return 0;
}

static void off(void)
{
	sim_pcap_on = false;
	sim_tap_remove(&tap);
}

static void failed(int err)
{
	off();
	sim_files_failed("capture", capture.path, err);
}

void sim_pcap_no_memory(void)
{
	if (sim_pcap_on)
		failed(ENOMEM);
}

static void end_dump(void)
{
	if (capture.dumper)
		lib.end(capture.dumper);
	if (capture.handle)
		lib.close(capture.handle);
	capture.dumper = NULL;
	capture.handle = NULL;
	if (capture.fd >= 0)
		close(capture.fd);
	capture.fd = -1;
}

void sim_pcap_close(void)
{
	int r = 0;

	if (sim_pcap_on && capture.link_type < 0)
		r = begin_dump();	/* a capture of nothing is one, too */
	if (r < 0)
		failed(-r);
	/* Our packets are in the file, so the segment still names it: nobody shows them again. */
	off();
	end_dump();
	sim_pcap_forget();
}

/* If others may write the file, the header must be there before they open it. */
static int begin_shared(bool alone)
{
	int r = 0;

	if (sim_fabric_is_shared())
		r = begin_dump();
	if (!r && alone)
		(void)flock(capture.fd, LOCK_SH);
	return r;
}

/* Of the file, whatever its name; not 0. */
static uint64_t identity(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 1;
	return ((uint64_t)st.st_dev << 40 ^ (uint64_t)st.st_ino) | UINT64_C(1) << 63;
}

int sim_pcap_open(const char *path)
{
	bool alone;
	int fd, r;

	r = load();
	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	sim_pcap_close();
	capture.fd = fd;
	capture.id = identity(fd);
	capture.link_type = -1;
	capture.complained = false;
	(void)snprintf(capture.path, sizeof(capture.path), "%s", path);
	alone = !flock(fd, LOCK_EX | LOCK_NB);
	if (!alone)
		(void)flock(fd, LOCK_SH);	/* until the one who begins it has begun */
	r = alone && ftruncate(fd, 0) < 0 ? -errno : begin_shared(alone);
	if (r < 0) {
		end_dump();
		return r;
	}
	sim_pcap_on = true;
	sim_segment_set_capture(capture.id);
	sim_tap_add(&tap);
	return 0;
}

/* ------------------------------------------------------------------------
 * Packets.
 */

static bool ready(enum sim_pcap_frame kind)
{
	int r;

	if (!sim_pcap_on)
		return false;
	r = capture.link_type < 0 ? begin_dump() : 0;
	if (r < 0) {
		/* Whoever shows this packet still uses what sim_pcap_close() frees. */
		failed(-r);
		end_dump();
		return false;
	}
	if (kind == SIM_PCAP_ETHERNET || capture.link_type == DLT_ERF)
		return true;
	if (!capture.complained)
		sim_core->log(POLYCM_LOG_WARN, NULL,
			      "packets of InfiniBand are left out of the capture: it began as one of "
			      "Ethernet, before the fabric had InfiniBand");
	capture.complained = true;
	return false;
}

static void dump(uint64_t now, const uint8_t *bytes, size_t len)
{
	const struct pcap_pkthdr header = {
		.ts.tv_sec = (time_t)(now / 1000000000u),
		.ts.tv_usec = (suseconds_t)(now % 1000000000u),	/* ns, as the file's precision says */
		.caplen = (bpf_u_int32)len,
		.len = (bpf_u_int32)len,
	};

	lib.dump((u_char *)capture.dumper, &header, bytes);
	if (lib.flush(capture.dumper) < 0)
		failed(errno);
}

static uint8_t *put_erf_header(uint8_t *at, uint64_t now, unsigned int type, size_t record_len,
			       size_t wire_len)
{
	uint64_t fraction = ((now % 1000000000u) << 32) / 1000000000u;
	uint64_t stamp = htole64((now / 1000000000u) << 32 | fraction);

	at = put_bytes(at, &stamp, sizeof(stamp));
	at = put8(at, type);
	at = put8(at, ERF_VARYING);
	at = put16(at, (unsigned int)record_len);
	at = put16(at, 0);
	return put16(at, (unsigned int)wire_len);
}

static void dump_erf(uint64_t now, enum sim_pcap_frame kind, const uint8_t *bytes, size_t len)
{
	uint8_t record[ERF_HEADER + ERF_ETH_PAD + SIM_PCAP_MAX_FRAME + FCS_SIZE], *at;

	if (kind == SIM_PCAP_INFINIBAND) {
		at = put_erf_header(record, now, ERF_TYPE_INFINIBAND, ERF_HEADER + len, len);
		at = put_bytes(at, bytes, len);
	} else {
		at = put_erf_header(record, now, ERF_TYPE_ETH,
				    ERF_HEADER + ERF_ETH_PAD + len + FCS_SIZE, len + FCS_SIZE);
		at = put16(at, 0);
		at = put_bytes(at, bytes, len);
		at = put_crc(at, sim_crc32(0, bytes, len));
	}
	dump(now, record, (size_t)(at - record));
}

void sim_pcap_write(enum sim_pcap_frame kind, const void *bytes, size_t len)
{
	uint64_t now = sim_now_to_note();

	if (len > SIM_PCAP_MAX_FRAME || !ready(kind))
		return;
	if (capture.link_type == DLT_ERF)
		dump_erf(now, kind, bytes, len);
	else
		dump(now, bytes, len);
}

/* How packets of a type are shown when they are sent, and what those that come in tell. */
static const struct type {
	void (*sent)(const struct sim_packet *packet);
	void (*received)(const struct sim_packet *packet);
} types[SIM_PACKET_TYPES] = {
	[SIM_PACKET_MAD] = { sim_pcap_mad_sent, sim_pcap_mad_received },
	[SIM_PACKET_STREAM] = { sim_pcap_stream_sent, sim_pcap_stream_received },
	[SIM_PACKET_RC] = { sim_pcap_qp_sent, sim_pcap_qp_received },
	[SIM_PACKET_UD] = { sim_pcap_ud_sent, NULL },
}, iwarp_data = { sim_pcap_ddp_sent, sim_pcap_ddp_received };

static const struct type *type_of(const struct sim_packet *packet)
{
	if (packet->type == SIM_PACKET_RC && packet->from->device->rules->protocol == POLYCM_PROTO_MPA)
		return &iwarp_data;
	return &types[packet->type];
}

/* A process that writes another file, or none: we show its packets, too. */
static bool is_foreign(unsigned int slot)
{
	if (sim_slot_is_remote(slot))
		return true;
	return slot != sim_self_slot() && slot < SIM_MAX_SLOTS && sim_segment_joined() &&
	       atomic_load(&sim_segment_peer(slot)->capture) != capture.id;
}

static void show(const struct sim_packet *packet)
{
	if (type_of(packet)->sent)
		type_of(packet)->sent(packet);
}

static void note_received(const struct sim_packet *packet)
{
	if (type_of(packet)->received)
		type_of(packet)->received(packet);
}

/* If the receiver does not write this file, we keep for it what it would learn from the packet. */
static void sent(const struct sim_packet *packet, unsigned int to_slot)
{
	show(packet);
	if (packet->to && is_foreign(to_slot))
		note_received(packet);
}

static void received(const struct sim_packet *packet)
{
	bool foreign = is_foreign(packet->from_slot);

	if (foreign)
		show(packet);
	if (foreign && packet->type == SIM_PACKET_RC)
		sim_pcap_keep_foreign(packet);
	note_received(packet);
}
