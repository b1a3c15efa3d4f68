/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/iwcm.h - an iWARP connection: the engine's part (iwcm.c, iwcm_active.c,
 * iwcm_passive.c, iwcm_rtr.c; what kernel iwcm and siw do) on top of a simulated TCP
 * stream (iwcm_stream.c), which carries the MPA frames.  Data between the
 * queue pairs goes the NIC's own way.
 *
 * A passive connection exists before its id: from the SYN until the MPA
 * request was read it belongs to the stream's list, afterwards to the id.
 * Engine lock held for all.
 */
#ifndef SIM_IWCM_H
#define SIM_IWCM_H

#include "providers/soft/link/link.h"
#include "providers/soft/wire/mpa.h"
#include "providers/soft/wire/segment.h"
#include "cma.h"

/* As kernel iwcm has them; connecting the stream is part of IDLE. */
enum iwcm_state {
	IWCM_IDLE,		/* not connected yet, or not any more */
	IWCM_CONN_RECV,		/* an MPA request that the program has not answered */
	IWCM_CONN_SENT,		/* our MPA request is out, or will be when the stream opens */
	IWCM_ACCEPTED,		/* answered; the initiator's RTR must come first */
	IWCM_ESTABLISHED,
};

enum iw_stream_state {
	IW_STREAM_CLOSED,
	IW_STREAM_SYN_SENT,
	IW_STREAM_OPEN,
};

/* What is needed only until the frames have been exchanged. */
struct iw_handshake {
	struct iwcm *cm;
	struct iw_handshake *next, *prev;	/* passive and without an id */
	union sim_sockaddr local, remote;
	size_t len;				/* come in, or waiting until it opens */
	uint8_t bytes[MPA_MAX_FRAME];
};

/* Ready to receive: the first message of an initiator whose peer must not send before it. */
enum iwcm_rtr {
	IWCM_RTR_NONE,
	IWCM_RTR_WRITE,			/* of no bytes, as is the other */
	IWCM_RTR_READ,
};

struct iwcm {
	struct sim_id *id;			/* NULL: passive, no request yet */
	enum iwcm_state state;
	bool enhanced;				/* IRD and ORD are negotiated */
	bool passive;
	uint8_t revision;			/* of the request */
	uint8_t rtr;				/* enum iwcm_rtr that was agreed on */
	uint16_t ird, ord;			/* ours; CONN_RECV: the least and the most allowed */

	enum iw_stream_state stream;
	uint32_t local_id, peer_id;		/* of the stream; keys that segments carry */
	struct sim_port *port, *peer;
	uint32_t qpn, peer_qpn;
	unsigned int syns;			/* sent so far */
	int error;				/* why the stream did not open */
	struct iw_handshake *handshake;
	struct sim_timer timer;			/* SYN, MPA request or MPA reply */
	void *next;				/* in the table; later in the list of those kept */
	bool fin_late;				/* the timer sends it */
};

/* --- The stream (iwcm_stream.c). --- */

void iw_streams_start(void);
void iw_streams_stop(void);
/* The link's handler: a segment from any process. */
void iw_stream_receive(const struct sim_packet *packet);

/* Connect, and report by iwcm_active_opened() or iwcm_open_failed(): 0, -EHOSTUNREACH, -ENOMEM. */
int iw_stream_start(struct iwcm *cm);
/*
 * Connect, waiting: 0, -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH, -ENOMEM.
 * cm->id has the addresses and the port.
 */
int iw_stream_connect(struct iwcm *cm);
/* The other end of all streams to that process is gone. */
void iw_stream_process_died(unsigned int slot);
/* The open one, or one being opened, with that number of ours; NULL: none. */
struct iwcm *iw_stream_find(uint32_t local_id);
/* Close it for both sides.  Nothing more comes from it. */
void iw_stream_close(struct iwcm *cm);
/* Is the memory of a closed one still needed?  Then the stream owns it from now on. */
bool iw_stream_keeps(struct iwcm *cm);
/* The frame was read: give the handshake's memory back. */
void iw_stream_handshake_done(struct iwcm *cm);

/* --- Segments (iwcm_segment.c). --- */

/* To a process that may listen; to NULL: nobody is there.  If it is lost, the timer sends another. */
void iw_send_syn(const struct iwcm *cm, struct sim_port *to, unsigned int slot);
/* The answer to a segment of no stream.  If it is lost, the peer asks again, or gives up. */
void iw_send_rst(const struct sim_packet *packet, const struct segment *to);
/* On an open stream, with the number of our queue pair.  -ENOMEM: nothing was sent. */
int iw_send(const struct iwcm *cm, enum segment_type type, const uint8_t *data, size_t len);
/* A fault rule refuses an MPA request in the receiver's place. */
void iw_reject_by_rule(const struct sim_packet *packet, uint16_t reason);

/* --- Upcalls of the stream. --- */

/* A passive stream opened: wait for the request. */
void iwcm_opened(struct iwcm *cm);
/* The stream of iw_stream_start() opened, or did not. */
void iwcm_active_opened(struct iwcm *cm);
void iwcm_open_failed(struct iwcm *cm);
/* Bytes after the frames.  true: the RTR that the responder waits for; false: the stream ends. */
bool iwcm_take_rtr(struct iwcm *cm, const uint8_t *data, size_t len);
/* More of a frame in cm->handshake. */
void iwcm_input(struct iwcm *cm);
/* The peer closed it, or broke the rules; the stream is closed already. */
void iwcm_closed(struct iwcm *cm);

/* --- Between the engine's files. --- */

/* iwcm.c.  The queue pair may have been destroyed; then its owner was told. */
struct sim_qp *iwcm_qp(const struct iwcm *cm);
/* The queue pair has no connection any more; errored if its stream is gone. */
void iwcm_release_qp(struct iwcm *cm, bool error);
void iwcm_set_state(struct iwcm *cm, enum iwcm_state state);
int iwcm_send_frame(struct iwcm *cm, const struct mpa_frame *frame);
/* Too much data for the length field, which siw does not check: it is sent so. */
bool iwcm_wraps(const struct sim_id *id, size_t len);
int iwcm_send_overlong(struct iwcm *cm, struct mpa_frame *frame);
/* err, and why: more RDMA reads at a time than the device has. */
int iwcm_too_deep(int err, const struct sim_device *device, const struct polycm_conn_param *param);
/* How much private data a program may send, and sends. */
size_t iwcm_limit(const struct sim_id *id, enum polycm_msg msg);
size_t iwcm_data_len(const struct polycm_conn_param *param);
void iwcm_free(struct iwcm *cm);

/* The timer: no reply, or request, came in time. */
void iwcm_reply_missing(struct sim_timer *timer);
void iwcm_request_missing(struct sim_timer *timer);

/* iwcm_active.c */
int iwcm_connect(struct sim_id *id, const struct polycm_conn_param *param);
void iwcm_got_reply(struct iwcm *cm, const struct mpa_frame *reply);
/* The attempt is over; reply (may be NULL) lies in the handshake's buffer. */
void iwcm_connect_failed(struct iwcm *cm, int status, const struct mpa_frame *reply);

/* iwcm_rtr.c */
/* Of those that the initiator offers, the one that we ask for. */
enum iwcm_rtr iwcm_choose_rtr(const struct mpa_frame *request);
void iwcm_put_rtr(struct mpa_frame *reply, enum iwcm_rtr rtr);
int iwcm_send_rtr(struct iwcm *cm, enum iwcm_rtr rtr);

/* iwcm_passive.c */
void iwcm_established(struct iwcm *cm);
void iwcm_got_request(struct iwcm *cm, const struct mpa_frame *request);
int iwcm_accept(struct sim_id *id, const struct polycm_conn_param *param);
int iwcm_reject(struct sim_id *id, const void *data, uint8_t len, uint8_t reason);
/* An answer with the reject flag, then the end of the stream. */
void iwcm_send_reject(struct iwcm *cm, const void *data, uint8_t len);

#endif
