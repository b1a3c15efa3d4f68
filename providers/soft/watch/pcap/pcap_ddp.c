/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/pcap/pcap_ddp.c - data of iWARP's queue pairs in the capture: FPDUs of MPA with
 * segments of DDP and RDMAP (RFC 5040, 5041, 5044).
 *
 * The simulator's acknowledgements are TCP's.  A lost packet is repeated by
 * the simulator's protocol; here it has the bytes of the stream that it had
 * before, as TCP's repetition has.
 */
#include "config.h"

#include "providers/soft/nic/rc_internal.h"
#include "pcap_crc.h"
#include "pcap_tcp.h"

enum rdmap_op {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
};

#define DDP_TAGGED 0x80u
#define DDP_LAST 0x40u
#define DDP_VERSION 0x01u
#define RDMAP_VERSION 0x40u
#define TAGGED_HEADER 14u
#define UNTAGGED_HEADER 18u
#define READ_REQUEST_SIZE 28u
#define TERMINATE_SIZE 4u
#define MAX_FPDU 1500u

/* A message of RDMAP that is being written. */
struct message {
	struct tcp_end *end;
	struct sim_pcap_rc rc;
	uint32_t start;			/* in the stream */
	enum rdmap_op op;
	uint32_t queue, number;		/* untagged */
	uint32_t stag;			/* tagged, or to be invalidated */
	uint64_t offset;		/* tagged: of its first byte */
	uint32_t length;
};

static bool is_tagged(enum rdmap_op op)
{
	return op == RDMAP_WRITE || op == RDMAP_READ_RESPONSE;
}

static size_t header_size(enum rdmap_op op)
{
	return is_tagged(op) ? TAGGED_HEADER : UNTAGGED_HEADER;
}

static size_t fpdu_size(size_t ulpdu)
{
	return (2 + ulpdu + 3) / 4 * 4 + 4;
}

/* Of the message in one FPDU. */
static uint32_t share(const struct tcp_end *end, enum rdmap_op op)
{
	return (uint32_t)(tcp_max_ulpdu(end) - header_size(op));
}

/* The message's length in the stream. */
static uint32_t stream_len(const struct tcp_end *end, enum rdmap_op op, uint32_t length)
{
	uint32_t each = share(end, op), whole = length / each, rest = length % each;
	size_t len = whole * fpdu_size(each + header_size(op));

	if (rest || !length)
		len += fpdu_size(rest + header_size(op));
	return (uint32_t)len;
}

static uint8_t *put_ddp(uint8_t *at, const struct message *m, uint32_t offset, bool last)
{
	bool tagged = is_tagged(m->op);

	at = put8(at, (tagged ? DDP_TAGGED : 0) | (last ? DDP_LAST : 0) | DDP_VERSION);
	at = put8(at, RDMAP_VERSION | (unsigned int)m->op);
	if (tagged) {
		at = put32(at, m->stag);
		return put64(at, m->offset + offset);
	}
	at = put32(at, m->stag);
	at = put32(at, m->queue);
	at = put32(at, m->number);
	return put32(at, offset);
}

/* One FPDU, into the stream at seq. */
static void write_fpdu(const struct message *m, uint32_t seq, uint32_t offset,
		       const struct iovec *data, unsigned int parts, size_t len)
{
	uint8_t fpdu[MAX_FPDU], *at;
	size_t ulpdu = header_size(m->op) + len;

	at = put16(fpdu, (unsigned int)ulpdu);
	at = put_ddp(at, m, offset, offset + len == m->length);
	at = sim_wire_put_parts(at, data, parts, len);
	while ((at - fpdu) % 4)
		at = put8(at, 0);
	at = put_crc(at, sim_crc32c(0, fpdu, (size_t)(at - fpdu)));
	tcp_send(m->end, seq, fpdu, (size_t)(at - fpdu));
}

static void put_fpdu(const void *arg, uint32_t index, const struct iovec *data, unsigned int parts,
		     uint32_t len)
{
	const struct message *m = arg;
	uint32_t each = share(m->end, m->op);

	write_fpdu(m, m->start + index * (uint32_t)fpdu_size(each + header_size(m->op)),
		   index * each, data, parts, len);
}

/* ------------------------------------------------------------------------
 * Messages.
 */

/* Where the message is in the stream: as before if it is repeated or goes on. */
static struct tcp_record *record_of(const struct message *m, const struct sim_packet *packet)
{
	struct tcp_end *end = m->end;
	uint32_t num = end->num_records < TCP_RECORDS ? end->num_records : TCP_RECORDS;
	struct tcp_record *record;

	for (uint32_t i = 1; i <= num; i++) {
		record = &end->records[(end->num_records - i) % TCP_RECORDS];
		if (record->psn == m->rc.h.psn && record->op == m->rc.h.op + 1) {
			record->number = packet->number;
			return record;
		}
	}
	record = tcp_new_record(end, packet->number, stream_len(end, m->op, m->length));
	record->psn = m->rc.h.psn;
	record->op = (uint8_t)(m->rc.h.op + 1);
	record->queue_number = m->op == RDMAP_READ_REQUEST ? ++end->reads :
			       is_tagged(m->op) ? 0 : ++end->sends;
	return record;
}

/* The reader's memory is not named on the simulator's link: its QP stands for it. */
static void send_read_request(const struct message *m)
{
	uint8_t body[READ_REQUEST_SIZE], *at = body;
	struct iovec data = { .iov_base = body, .iov_len = sizeof(body) };

	at = put32(at, m->rc.h.src_qpn);
	at = put64(at, 0);
	at = put32(at, m->rc.h.length);
	at = put32(at, m->rc.h.rkey);
	(void)put64(at, m->rc.h.length ? sim_pcap_address(m->rc.h.rkey, m->rc.h.remote_addr) : 0);
	write_fpdu(m, m->start, 0, &data, 1, sizeof(body));
}

/* Layer, type and code of the error, RFC 5040, 4.8; no headers of what was wrong follow. */
static void send_terminate(const struct message *m)
{
	uint32_t code = m->rc.h.syndrome == RC_NAK_REMOTE_ACCESS ? 0x0101u :	/* base and bounds */
			m->rc.h.syndrome == RC_NAK_REMOTE_OPERATION ? 0x1202u :	/* no buffer */
			0x02ffu;						/* catastrophic */
	uint8_t body[TERMINATE_SIZE];
	struct iovec data = { .iov_base = body, .iov_len = sizeof(body) };

	(void)put32(body, code << 16);
	write_fpdu(m, m->start, 0, &data, 1, sizeof(body));
}

static bool describe(struct message *m)
{
	const struct rc_header *h = &m->rc.h;

	m->length = h->length;
	switch (h->op) {
	case RC_SEND:
		m->op = h->flags & RC_F_SOLICITED ? RDMAP_SEND_SE : RDMAP_SEND;
		if (h->flags & RC_F_INVALIDATE) {
			m->op++;
			m->stag = h->rkey;
		}
		return true;
	case RC_WRITE:
		m->op = RDMAP_WRITE;
		m->stag = h->rkey;
		m->offset = h->length ? sim_pcap_address(h->rkey, h->remote_addr) : 0;
		return true;
	case RC_READ:
		m->op = RDMAP_READ_REQUEST;
		m->queue = 1;
		m->length = READ_REQUEST_SIZE;
		return true;
	case RC_READ_DATA:
		m->op = RDMAP_READ_RESPONSE;
		m->stag = h->dst_qpn;
		return true;
	case RC_NAK:
		m->op = RDMAP_TERMINATE;
		m->queue = 2;
		m->length = TERMINATE_SIZE;
		return h->syndrome != RC_NAK_SEQUENCE && h->syndrome != RC_NAK_NO_REF;
	default:
		return false;
	}
}

void sim_pcap_ddp_sent(const struct sim_packet *packet)
{
	struct message m = { .stag = 0 };
	struct tcp_record *record;

	if (!sim_pcap_rc_parse(packet, &m.rc))
		return;
	m.end = tcp_end_of_qp(packet->from, m.rc.h.src_qpn);
	if (!m.rc.qp || !m.end)
		return;
	if (!describe(&m)) {
		tcp_send_ack(m.end);
		return;
	}
	m.rc.reads = m.end->reads_seen;
	record = record_of(&m, packet);
	m.start = record->start;
	m.number = m.op == RDMAP_TERMINATE ? 1 : record->queue_number;
	if (m.op == RDMAP_TERMINATE)
		send_terminate(&m);
	else if (m.op != RDMAP_READ_REQUEST)
		sim_pcap_rc_write(&m.rc, share(m.end, m.op), put_fpdu, &m);
	else if (!m.rc.h.offset)
		send_read_request(&m);
}

/* Our records do not have what another process sends, and it comes in order. */
static void count_received(struct tcp_end *end, const struct sim_pcap_rc *rc)
{
	struct message m = { .end = end, .rc = *rc };

	if (!describe(&m))
		return;
	/* A message counts when its last part is here. */
	if ((rc->h.op == RC_READ && !rc->h.offset) || rc->h.op == RC_NAK ||
	    rc->end == rc->h.length)
		end->receive_next += stream_len(end, m.op, m.length);
}

void sim_pcap_ddp_received(const struct sim_packet *packet)
{
	struct sim_pcap_rc rc;
	struct tcp_end *end;

	if (!sim_pcap_rc_parse(packet, &rc))
		return;
	end = tcp_end_of_qp(packet->to, rc.h.dst_qpn);
	if (!end)
		return;
	if (rc.h.op == RC_READ)
		end->reads_seen[rc.h.psn % SIM_PCAP_READS] =
			(struct sim_pcap_read){ rc.h.psn, rc.h.rkey, rc.h.remote_addr };
	if (tcp_end_of_id(end->peer_id))
		tcp_received(end, packet->number);
	else
		count_received(end, &rc);
}
