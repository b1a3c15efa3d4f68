/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch/files.h - the files of the trace and the capture that settings name, such as
 * POLYCM_SIM_TRACE and POLYCM_SIM_PCAP: one file for each fabric of a process.
 */
#ifndef SIM_FILES_H
#define SIM_FILES_H

/*
 * Open the files for a new fabric of the process: FILE for the first, FILE.2, FILE.3
 * and so on for the next ones.  A fabric on which nothing has happened leaves its
 * files to the next.  The arguments are the names of the settings.  0, or a negative errno,
 * which is logged.  Setup lock held, not the engine's.
 */
int sim_files_open(const char *trace, const char *capture);

#endif
