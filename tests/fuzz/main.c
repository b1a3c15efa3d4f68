/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - a fuzz target as a test: runs the files that are named, or all of
 * the target's corpus, in order of their names.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define LARGEST (1u << 20)

static char folder[PATH_MAX];

static int set_folder(void)
{
	const char *source = getenv("abs_top_srcdir");
	int len;

	if (!source) {
		fprintf(stderr, "abs_top_srcdir is not set: start it with make check, or name files\n");
		return -EINVAL;
	}
	len = snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", source, fuzz_name);
	return len > 0 && (size_t)len < sizeof(folder) ? 0 : -ENAMETOOLONG;
}

static int run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data;
	size_t size;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	data = malloc(LARGEST);
	if (!data) {
		fclose(file);
		return -ENOMEM;
	}
	size = fread(data, 1, LARGEST, file);
	fclose(file);
	/* Of its own length, so that a reader that goes past the end is seen. */
	if (size)
		data = realloc(data, size);
	(void)LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int run_corpus(void)
{
	struct dirent **entries;
	char path[PATH_MAX + NAME_MAX + 2];
	int num, failed = 0;

	num = scandir(folder, &entries, not_hidden, alphasort);
	if (num < 0) {
		fprintf(stderr, "%s: %s\n", folder, strerror(errno));
		return 1;
	}
	for (int i = 0; i < num; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		failed |= run_file(path) < 0;
		free(entries[i]);
	}
	free(entries);
	printf("%s: %d inputs\n", fuzz_name, num);
	return failed || !num;
}

static void write_seed(const char *name, const uint8_t *data, size_t size)
{
	char path[PATH_MAX + NAME_MAX + 2];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wb");
	if (!file || fwrite(data, 1, size, file) != size || fclose(file)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc > 1 && strcmp(argv[1], "--seeds")) {
		for (int i = 1; i < argc; i++)
			failed |= run_file(argv[i]) < 0;
		return failed;
	}
	if (set_folder() < 0)
		return 1;
	if (argc > 1) {
		fuzz_seeds(write_seed);
		return 0;
	}
	return run_corpus();
}
