/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_tcp.h - iWARP's TCP connections as the capture shows them.  Each end is
 * known in the process that has it, from its SYN or SYN-ACK on.
 */
#ifndef SIM_PCAP_TCP_H
#define SIM_PCAP_TCP_H

#include "pcap_internal.h"

#define TCP_RECORDS 1024u

/* What was sent, so that it has the same place in the stream when it is sent again. */
struct tcp_record {
	uint64_t number;		/* of the packet that carried it last */
	uint32_t psn;
	uint8_t op;			/* requests and replies count for themselves */
	bool arrived;
	uint32_t start, len;		/* in the stream, whole messages */
	uint32_t queue_number;		/* DDP's, untagged */
};

struct tcp_end {
	struct sim_pcap_kept kept;	/* by local_id */
	uint32_t local_id, peer_id;
	uint64_t qp_key;		/* port and QP number; 0: none yet */
	const struct sim_port *from, *to;
	union sim_sockaddr src, dst;
	uint32_t send_next, receive_next;
	bool fin_sent, fin_received;
	uint32_t sends, reads;		/* DDP's message numbers of queues 0 and 1 */
	uint32_t num_records;
	struct tcp_record records[TCP_RECORDS];
	struct sim_pcap_read reads_seen[SIM_PCAP_READS];
};

struct tcp_end *tcp_end_of_qp(const struct sim_port *port, uint32_t qpn);
struct tcp_end *tcp_end_of_id(uint32_t local_id);
/* Bytes of the stream from `seq' on. */
void tcp_send(const struct tcp_end *end, uint32_t seq, const void *data, size_t len);
void tcp_send_ack(const struct tcp_end *end);
/* How much an FPDU may carry. */
size_t tcp_max_ulpdu(const struct tcp_end *end);
/* The packet has come in at the end that it was for: as far as the stream has no gap, it is received. */
void tcp_received(struct tcp_end *end, uint64_t number);
struct tcp_record *tcp_new_record(struct tcp_end *end, uint64_t number, uint32_t len);

#endif
