/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/files.h - POLYCM_SIM_TRACE and POLYCM_SIM_PCAP: into which files the fabrics
 * of a process are written.
 */
#ifndef SIM_FILES_H
#define SIM_FILES_H

/*
 * The process has a new fabric.  The first goes into the files themselves, the
 * next ones into FILE.2, FILE.3 and so on; a fabric on which nothing has
 * happened leaves its files to the next.  0, or a negative errno that the log
 * tells.  Setup lock held, not the engine's.
 */
int sim_files_open(void);

#endif
