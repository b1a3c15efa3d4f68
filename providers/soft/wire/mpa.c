/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire/mpa.c - the codec of MPA Request and Reply frames.
 *
 * Key (16 bytes), flags, revision, length of the private data (16 bits), then
 * the private data.  Enhanced set-up takes the first four bytes of these for
 * the IRD and ORD words, which programs do not see.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "mpa.h"

#define MPA_OFF_REVISION 17u
#define MPA_OFF_LENGTH 18u

#define MPA_FLAG_MARKERS 0x80u
#define MPA_FLAG_CRC 0x40u
#define MPA_FLAG_ENHANCED 0x10u

/* Top bits of the two control words. */
#define MPA_IRD_PEER_TO_PEER 0x8000u
#define MPA_IRD_ZERO_LENGTH_SEND 0x4000u
#define MPA_ORD_RDMA_WRITE 0x8000u
#define MPA_ORD_RDMA_READ 0x4000u

static const char *const mpa_keys[] = {
	[MPA_REQUEST]	= "MPA ID Req Frame",
	[MPA_REPLY]	= "MPA ID Rep Frame",
};

static inline uint16_t get_be16(const uint8_t *wire)
{
	return (uint16_t)(wire[0] << 8 | wire[1]);
}

static inline void put_be16(uint8_t *wire, unsigned int value)
{
	wire[0] = (uint8_t)(value >> 8);
	wire[1] = (uint8_t)value;
}

static void encode_control(const struct mpa_frame *frame, uint8_t *wire)
{
	unsigned int ird = frame->ird & MPA_DEPTH_MASK;
	unsigned int ord = frame->ord & MPA_DEPTH_MASK;

	if (frame->peer_to_peer)
		ird |= MPA_IRD_PEER_TO_PEER;
	if (frame->rtr_zero_length_send)
		ird |= MPA_IRD_ZERO_LENGTH_SEND;
	if (frame->rtr_rdma_write)
		ord |= MPA_ORD_RDMA_WRITE;
	if (frame->rtr_rdma_read)
		ord |= MPA_ORD_RDMA_READ;
	put_be16(wire, ird);
	put_be16(wire + 2, ord);
}

static void decode_control(const uint8_t *wire, struct mpa_frame *frame)
{
	unsigned int ird = get_be16(wire);
	unsigned int ord = get_be16(wire + 2);

	frame->ird = ird & MPA_DEPTH_MASK;
	frame->ord = ord & MPA_DEPTH_MASK;
	frame->peer_to_peer = ird & MPA_IRD_PEER_TO_PEER;
	frame->rtr_zero_length_send = ird & MPA_IRD_ZERO_LENGTH_SEND;
	frame->rtr_rdma_write = ord & MPA_ORD_RDMA_WRITE;
	frame->rtr_rdma_read = ord & MPA_ORD_RDMA_READ;
}

int mpa_encode(const struct mpa_frame *frame, uint8_t *buf, size_t size, size_t *ret_len)
{
	unsigned int control = frame->enhanced ? MPA_CONTROL_SIZE : 0;
	unsigned int length = control + frame->private_data_len;
	unsigned int flags = 0;

	if (frame->revision > MPA_MAX_REVISION || length > MPA_MAX_PRIVATE)
		return -EINVAL;
	if (frame->enhanced && frame->revision != MPA_REVISION_ENHANCED)
		return -EINVAL;
	if (size < MPA_HEADER_SIZE + length)
		return -ENOBUFS;

	if (frame->markers)
		flags |= MPA_FLAG_MARKERS;
	if (frame->crc)
		flags |= MPA_FLAG_CRC;
	if (frame->reject)
		flags |= MPA_FLAG_REJECT;
	if (frame->enhanced)
		flags |= MPA_FLAG_ENHANCED;
	memcpy(buf, mpa_keys[frame->type], MPA_KEY_SIZE);
	buf[MPA_OFF_FLAGS] = (uint8_t)flags;
	buf[MPA_OFF_REVISION] = frame->revision;
	put_be16(buf + MPA_OFF_LENGTH, length);
	if (frame->enhanced)
		encode_control(frame, buf + MPA_HEADER_SIZE);
	if (frame->private_data_len)
		memcpy(buf + MPA_HEADER_SIZE + control, frame->private_data,
		       frame->private_data_len);
	*ret_len = MPA_HEADER_SIZE + length;
	return 0;
}

int mpa_decode(const uint8_t *buf, size_t len, struct mpa_frame *ret_frame, size_t *ret_used)
{
	struct mpa_frame frame = { .type = MPA_REQUEST };
	const uint8_t *private_data;
	unsigned int length, flags;

	if (len < MPA_HEADER_SIZE)
		return -EAGAIN;
	if (memcmp(buf, mpa_keys[MPA_REPLY], MPA_KEY_SIZE) == 0)
		frame.type = MPA_REPLY;
	else if (memcmp(buf, mpa_keys[MPA_REQUEST], MPA_KEY_SIZE) != 0)
		return -EPROTO;
	frame.revision = buf[MPA_OFF_REVISION];
	length = get_be16(buf + MPA_OFF_LENGTH);
	if (frame.revision > MPA_MAX_REVISION || length > MPA_MAX_PRIVATE)
		return -EPROTO;

	flags = buf[MPA_OFF_FLAGS];
	frame.markers = flags & MPA_FLAG_MARKERS;
	frame.crc = flags & MPA_FLAG_CRC;
	frame.reject = flags & MPA_FLAG_REJECT;
	frame.enhanced = frame.revision == MPA_REVISION_ENHANCED && flags & MPA_FLAG_ENHANCED;
	if (frame.enhanced && length < MPA_CONTROL_SIZE)
		return -EPROTO;
	if (len - MPA_HEADER_SIZE < length)
		return -EAGAIN;

	*ret_used = MPA_HEADER_SIZE + length;
	private_data = buf + MPA_HEADER_SIZE;
	if (frame.enhanced) {
		decode_control(private_data, &frame);
		private_data += MPA_CONTROL_SIZE;
		length -= MPA_CONTROL_SIZE;
	}
	frame.private_data_len = (uint16_t)length;
	frame.private_data = length ? private_data : NULL;
	*ret_frame = frame;
	return 0;
}
