/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ofi/io.h - descriptors that are waited for: a thread sleeps until one is ready, takes the
 * engine's lock and calls its function.  A program that polls does the same in between.
 *
 * Engine lock held for all functions, and while a source's function runs.
 */
#ifndef OFI_IO_H
#define OFI_IO_H

#include <stdbool.h>
#include <stdint.h>

struct ofi_source {
	int fd;			/* whoever has the source closes it after ofi_io_remove() */
	uint32_t events;	/* EPOLLIN and so on that are waited for */
	/* Ready for what is in events, or an error.  It may remove and free any source. */
	void (*ready)(struct ofi_source *source, uint32_t events);
};

/* Before the first source.  A negative errno: no thread or descriptor; why is in the log. */
int ofi_io_start(void);
/* No source is left.  The thread ends by itself. */
void ofi_io_stop(void);
/* In the child of a fork(): neither the thread nor the sources are its own. */
void ofi_io_forget(void);

/* -ENOMEM or -ENOSPC: the system watches no more descriptors. */
int ofi_io_add(struct ofi_source *source);
/* Wait for other events. */
void ofi_io_change(struct ofi_source *source, uint32_t events);
/* Its function is not called any more, also if it was about to be. */
void ofi_io_remove(struct ofi_source *source);

/* Handle what is ready now, without waiting.  False: nothing was. */
bool ofi_io_poll(void);
/* The program polls: handle what is ready now.  The thread relies on it while it goes on. */
void ofi_io_fetch(void);
/* Does somebody send what is put off now, soon, whatever the program does? */
bool ofi_io_is_watched(void);
/* The program polls no more. */
void ofi_io_idle(void);

/*
 * Set at start-up or NULL: send what was put off, since nothing came along that could take it with
 * it.  all: also what may be put off further.  Returns whether something still is.
 */
extern bool (*ofi_io_put_off)(bool all);

#endif
