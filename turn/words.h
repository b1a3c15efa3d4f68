/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/words.h - words of memory that several processes see, each at an address of its own. */
#ifndef TURN_WORDS_H
#define TURN_WORDS_H

#include "segment.h"

/* The word at that address.  is_private: no other process waits on it (FUTEX_PRIVATE_FLAG). */
struct turn_word turn_word_at(const void *address, bool is_private);
/* Memory was mapped or unmapped. */
void turn_words_forget(void);

#endif
