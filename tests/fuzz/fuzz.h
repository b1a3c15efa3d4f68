/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz.h - what a fuzz target of this folder has: libFuzzer's entry, and the
 * inputs that it starts from.
 *
 * Built as usual, a target is a test: main.c gives it every file of its corpus
 * (tests/fuzz/corpus/NAME) once.  `configure --enable-fuzzers CC=clang' builds
 * it with libFuzzer as well (tests/fuzz/NAME.fuzz).
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* The target's name, which is its corpus' too. */
extern const char fuzz_name[];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Call put() for each input to start from, taken from real exchanges;
 * `NAME --seeds' writes them into the corpus.
 */
void fuzz_seeds(void (*put)(const char *name, const uint8_t *data, size_t size));

#endif
