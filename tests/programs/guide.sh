#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# guide.sh [PREFIX]: docs/testing-your-program.md in an empty folder, from top to bottom. A display with a file's
# name becomes that file, one of the shell runs, and one of text behind it is what that printed. Without PREFIX
# against the build tree, with it against what is installed there.
. "${abs_top_srcdir:?start it with ./run}/tests/programs/lib.sh" || exit 99
. "$abs_top_srcdir/tests/programs/prefix.sh" || exit 99

need ibv_devinfo make pkg-config rping
mkdir "$work/guide" || exit 99
follows "$abs_top_srcdir/docs/testing-your-program.md" "$work/guide"
finish
