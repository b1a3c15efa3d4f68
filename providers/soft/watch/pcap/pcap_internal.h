/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_internal.h - shared by the pcap*.c files: pcap.c (the file),
 * pcap_wire.c (Ethernet, IP, UDP, LRH, GRH and their checks), pcap_mad.c
 * (messages of the InfiniBand CM), pcap_qp.c (data of QPs), pcap_tcp.c and
 * pcap_ddp.c (iWARP), pcap_data.c (data that another process sends), pcap_kept.c (what is
 * known of QPs and connections).  Engine lock held for all.
 */
#ifndef SIM_PCAP_INTERNAL_H
#define SIM_PCAP_INTERNAL_H

#include <string.h>
#include <uthash.h>

#include "providers/soft/link/tap.h"
#include "providers/soft/wire/rc.h"
#include "pcap.h"

/* Numbers in headers, most significant byte first. */
static inline uint8_t *put8(uint8_t *at, unsigned int value)
{
	*at = (uint8_t)value;
	return at + 1;
}

static inline uint8_t *put16(uint8_t *at, unsigned int value)
{
	return put8(put8(at, value >> 8), value);
}

static inline uint8_t *put32(uint8_t *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value);
}

static inline uint8_t *put64(uint8_t *at, uint64_t value)
{
	return put32(put32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

/* A CRC, least significant byte first. */
static inline uint8_t *put_crc(uint8_t *at, uint32_t crc)
{
	return put32(at, __builtin_bswap32(crc));
}

static inline uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

/* --- pcap.c --- */

enum sim_pcap_frame { SIM_PCAP_ETHERNET, SIM_PCAP_INFINIBAND };

/* Write a frame that is on the wire now, without Ethernet's FCS. */
void sim_pcap_write(enum sim_pcap_frame kind, const void *bytes, size_t len);
#define SIM_PCAP_MAX_FRAME 9216u
/* No memory for what must be known of a connection: the capture ends, which is logged. */
void sim_pcap_no_memory(void);

/* --- pcap_kept.c: what must be known of QPs and connections until the capture ends --- */

enum sim_pcap_kind {
	SIM_PCAP_QPS, SIM_PCAP_TAILS, SIM_PCAP_ENDS, SIM_PCAP_QP_ENDS, SIM_PCAP_SYNS, SIM_PCAP_KINDS
};

/* The first member of each. */
struct sim_pcap_kept {
	uint64_t key;
	UT_hash_handle hh;
};

void *sim_pcap_find(enum sim_pcap_kind kind, uint64_t key);
/* A new one of that size, zero but for its key.  NULL: no memory, which ends the capture. */
void *sim_pcap_keep(enum sim_pcap_kind kind, uint64_t key, size_t size);
void sim_pcap_drop(enum sim_pcap_kind kind, void *what);
unsigned int sim_pcap_num(enum sim_pcap_kind kind);
void sim_pcap_forget(void);

/* --- pcap_wire.c --- */

/* Addresses of a packet, and fields of its IP header, LRH or GRH. */
struct sim_wire_path {
	const struct sim_port *from, *to;	/* to NULL: nobody has the destination address */
	union ibv_gid sgid, dgid;
	bool global;			/* InfiniBand: with a GRH */
	uint8_t sl, traffic_class, hop_limit;
	uint32_t flow_label;
};

#define SIM_BTH_SIZE 12u
/* Room for BTH and what may follow it. */
#define SIM_TRANSPORT_MAX 64u

/* The first addresses of two ports, for packets that do not name theirs. */
void sim_wire_default_path(const struct sim_port *from, const struct sim_port *to,
			   struct sim_wire_path *ret_path);
/* Put a BTH into header; flags 0x80: solicited event, ack: an acknowledgement is requested. */
uint8_t *sim_wire_bth(uint8_t *header, uint8_t opcode, uint8_t flags, uint32_t dst_qpn, bool ack,
		      uint32_t psn);
uint8_t *sim_wire_put_parts(uint8_t *at, const struct iovec *data, unsigned int parts, size_t len);
/* One packet: BTH and what follows it, then data; padding and checks are added. */
void sim_wire_write(const struct sim_wire_path *path, uint8_t *header, size_t header_len,
		    const struct iovec *data, unsigned int parts, size_t len);
/* A TCP segment, whose checksum is added. */
void sim_wire_write_tcp(const struct sim_wire_path *path, uint8_t *segment, size_t len);

/* --- pcap_data.c: packets of queue pairs, and their data --- */

#define SIM_PCAP_READS 256u		/* more cannot be outstanding */

/* A read that came in, for the data of its answer; index: PSN % SIM_PCAP_READS. */
struct sim_pcap_read {
	uint32_t psn, rkey;
	uint64_t addr;
};

struct sim_pcap_rc {
	const struct sim_packet *packet;
	struct rc_header h;
	bool foreign;			/* another process sent it */
	struct sim_qp *qp;		/* the sender's; foreign: the receiver's */
	uint32_t end;			/* offset behind what this packet carries of its message */
	const struct sim_pcap_read *reads;	/* of the sender's QP; set before data is written */
};

/* false: the packet is too short. */
bool sim_pcap_rc_parse(const struct sim_packet *packet, struct sim_pcap_rc *ret_rc);

typedef void (*sim_pcap_put_t)(const void *arg, uint32_t index, const struct iovec *data,
			       unsigned int parts, uint32_t len);
/*
 * Cut the packet's message into pieces of `each' bytes, and put those whose last byte is in
 * this packet.  Stops at a piece whose data cannot be read.
 */
void sim_pcap_rc_write(const struct sim_pcap_rc *rc, uint32_t each, sim_pcap_put_t put,
		       const void *arg);

/* An address in memory as captures show it: in virtual time its offset in the memory region. */
uint64_t sim_pcap_address(uint32_t rkey, uint64_t addr);

/* Bytes of the message of a foreign packet; false: the packet does not have them. */
bool sim_pcap_foreign_data(const struct sim_packet *packet, uint32_t from, uint32_t len,
			   struct iovec *ret_data);
/* A foreign packet was shown: keep the end of its data until the message's next packet. */
void sim_pcap_keep_foreign(const struct sim_packet *packet);

/* --- pcap_mad.c, pcap_qp.c, pcap_tcp.c, pcap_ddp.c --- */

void sim_pcap_mad_sent(const struct sim_packet *packet);
void sim_pcap_mad_received(const struct sim_packet *packet);
void sim_pcap_qp_sent(const struct sim_packet *packet);
void sim_pcap_qp_received(const struct sim_packet *packet);
void sim_pcap_ud_sent(const struct sim_packet *packet);
void sim_pcap_stream_sent(const struct sim_packet *packet);
void sim_pcap_stream_received(const struct sim_packet *packet);
void sim_pcap_ddp_sent(const struct sim_packet *packet);
void sim_pcap_ddp_received(const struct sim_packet *packet);
/* The next PSN that a QP of ours sends; NULL: no memory, which ends the capture. */
uint32_t *sim_pcap_qp_psn(const struct sim_port *port, uint32_t qpn);

#endif
