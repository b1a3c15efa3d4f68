/* SPDX-License-Identifier: BSD-2-Clause */
/* base/export.h - what libpolycm shows: the functions marked so, with the versions of libpolycm.map. */
#ifndef POLYCM_CORE_EXPORT_H
#define POLYCM_CORE_EXPORT_H

#define POLYCM_EXPORT __attribute__((visibility("default")))

#endif
