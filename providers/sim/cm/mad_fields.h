/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cm/mad_fields.h - where each field of each CM message is: one row per field,
 * read by the encoder, the decoder and the visitor of mad.c.
 */
#ifndef SIM_MAD_FIELDS_H
#define SIM_MAD_FIELDS_H

#include "mad.h"

/*
 * No integer of up to 32 bits crosses a 32-bit word of the wire, so a row says
 * which word, how far its value is shifted in there, and its mask.
 */
struct cm_field {
	const char *name;	/* NULL: another piece of the member named before */
	uint16_t member;	/* offset in the message's struct */
	uint16_t width;		/* bits on the wire */
	uint8_t size;		/* of the member: 1, 2, 4, 8; CM_FIELD_BYTES: an array */
	uint8_t at;		/* byte of the CM data; sizes 1, 2, 4: of the word */
	uint8_t lsb;		/* lowest bit in the word */
	uint8_t shift;		/* lowest bit in the member, not 0 only in pieces */
	uint32_t mask;		/* of the value, unshifted */
};

#define CM_FIELD_BYTES 0u

struct cm_layout {
	const char *name;
	const struct cm_field *fields;
	size_t num_fields;
};

/* NULL if there is no such message. */
const struct cm_layout *cm_layout(uint16_t attr_id);

#endif
