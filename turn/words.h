/* SPDX-License-Identifier: BSD-2-Clause */
/* turn/words.h - words of memory that several processes see, each at an address of its own. */
#ifndef TURN_WORDS_H
#define TURN_WORDS_H

#include "segment.h"

/* The word at that address.  is_private: no other process waits on it (FUTEX_PRIVATE_FLAG). */
struct turn_word turn_word_at(const void *address, bool is_private);
/* What is there now is no longer, or will be something else. */
void turn_words_forget(uint64_t begin, uint64_t len);

#endif
