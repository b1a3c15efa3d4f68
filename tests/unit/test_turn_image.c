/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of programs: whether something can be preloaded into them. */
#include "config.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "tests/cmocka_all.h"
#include "turn/image.h"

/* A file as small as can be. */
static struct {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[2];
} elf;

static const void *bytes;
static size_t num_bytes;

static long read_bytes(const struct turn_image_file *file, void *to, size_t len, uint64_t at)
{
	(void)file;
	if (at >= num_bytes)
		return 0;
	if (len > num_bytes - at)
		len = num_bytes - at;
	memcpy(to, (const char *)bytes + at, len);
	return (long)len;
}

static enum turn_image look(const void *at, size_t len, char *interpreter, size_t size)
{
	const struct turn_image_file file = { .read = read_bytes };

	bytes = at;
	num_bytes = len;
	return turn_image_of(&file, interpreter, size);
}

static enum turn_image look_at_elf(void)
{
	return look(&elf, sizeof(elf), NULL, 0);
}

static int setup(void **state)
{
	(void)state;
	memset(&elf, 0, sizeof(elf));
	memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
	elf.header.e_ident[EI_CLASS] = ELFCLASS64;
	elf.header.e_machine = EM_X86_64;
	elf.header.e_phoff = sizeof(elf.header);
	elf.header.e_phnum = 2;
	elf.segments[0].p_type = PT_LOAD;
	elf.segments[1].p_type = PT_INTERP;
	return 0;
}

static void test_a_dynamic_linker_preloads(void **state)
{
	(void)state;
	assert_int_equal(look_at_elf(), TURN_IMAGE_FITS);
	elf.segments[1].p_type = PT_NOTE;
	assert_int_equal(look_at_elf(), TURN_IMAGE_STATIC);
}

static void test_the_dynamic_linker_has_a_name(void **state)
{
	(void)state;
	elf.segments[1] = (Elf64_Phdr){
		.p_type = PT_DYNAMIC, .p_filesz = sizeof(elf.dynamic),
		.p_offset = (uint64_t)((char *)elf.dynamic - (char *)&elf),
	};
	assert_int_equal(look_at_elf(), TURN_IMAGE_STATIC);
	elf.dynamic[0].d_tag = DT_DEBUG;
	elf.dynamic[1].d_tag = DT_SONAME;
	assert_int_equal(look_at_elf(), TURN_IMAGE_FITS);
}

static void test_other_processors(void **state)
{
	(void)state;
	elf.header.e_machine = EM_AARCH64;
	assert_int_equal(look_at_elf(), TURN_IMAGE_FOREIGN);
	elf.header.e_machine = EM_X86_64;
	elf.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(look_at_elf(), TURN_IMAGE_FOREIGN);
}

static void test_what_is_cut_off_is_the_kernels(void **state)
{
	(void)state;
	elf.segments[1].p_type = PT_NOTE;
	for (size_t len = 0; len < sizeof(elf.header) + sizeof(elf.segments); len++)
		assert_int_equal(look(&elf, len, NULL, 0), TURN_IMAGE_FITS);
	assert_int_equal(look("\177ELF", 4, NULL, 0), TURN_IMAGE_FITS);
	assert_int_equal(look("text", 4, NULL, 0), TURN_IMAGE_FITS);
}

static void test_a_script_names_its_interpreter(void **state)
{
	static const struct { const char *line, *interpreter; } lines[] = {
		{ "#!/bin/sh\n", "/bin/sh" }, { "#! \t/bin/sh -e\n", "/bin/sh" },
		{ "#!/bin/sh", "/bin/sh" }, { "#!\n", "" }, { "#!", "" },
		{ "#!/a/longer/name\n", "/a/long" },
	};
	char is[8];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		memset(is, 'x', sizeof(is));
		assert_int_equal(look(lines[i].line, strlen(lines[i].line), is, sizeof(is)),
				 TURN_IMAGE_SCRIPT);
		assert_string_equal(is, lines[i].interpreter);
	}
}

static bool gains(mode_t mode, uid_t owner, gid_t group, bool has_capabilities, uid_t uid)
{
	const struct stat st = { .st_mode = S_IFREG | mode, .st_uid = owner, .st_gid = group };

	return turn_image_gains_rights(&st, has_capabilities, uid, 1000);
}

static void test_rights_of_others(void **state)
{
	(void)state;
	assert_false(gains(0755, 0, 0, false, 1000));
	assert_true(gains(04755, 0, 0, false, 1000));
	assert_false(gains(04755, 1000, 0, false, 1000));
	assert_false(gains(04755, 0, 0, false, 0));
	assert_true(gains(02755, 0, 0, false, 1000));
	assert_false(gains(02745, 0, 0, false, 1000));	/* a lock, not a right */
	assert_false(gains(02755, 0, 1000, false, 1000));
	assert_true(gains(0755, 0, 0, true, 1000));
	assert_false(gains(0755, 0, 0, true, 0));
	/* Whoever has no number in a user namespace. */
	assert_false(gains(06755, 65534, 65534, false, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_dynamic_linker_preloads, setup),
		cmocka_unit_test_setup(test_the_dynamic_linker_has_a_name, setup),
		cmocka_unit_test_setup(test_other_processors, setup),
		cmocka_unit_test_setup(test_what_is_cut_off_is_the_kernels, setup),
		cmocka_unit_test(test_a_script_names_its_interpreter),
		cmocka_unit_test(test_rights_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
