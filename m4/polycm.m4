dnl SPDX-License-Identifier: BSD-2-Clause
dnl Macros of polycm's configure.ac: what is missing, which flags the compiler takes.

dnl POLYCM_NEED(PACKAGE, WHAT): note that WHAT is missing and which Debian package has it.
AC_DEFUN([POLYCM_NEED], [
	AC_MSG_WARN([$2 not found])
	AS_CASE([" $polycm_missing "], [*" $1 "*], [], [polycm_missing="$polycm_missing $1"])
	AS_TR_SH([polycm_missing_$1])=yes
])

dnl POLYCM_NEED_DONE: stop if anything was noted.
AC_DEFUN([POLYCM_NEED_DONE], [
	AS_IF([test -n "$polycm_missing"], [AC_MSG_ERROR([something that polycm needs is missing (see the warnings above).
On Debian and Ubuntu, install it as root with:
    apt-get install$polycm_missing])])
])

dnl POLYCM_LIB_OF(FUNCTION, LIBRARY, VARIABLE): VARIABLE is -lLIBRARY unless libc has FUNCTION.
AC_DEFUN([POLYCM_LIB_OF], [
	AC_CHECK_FUNC([$1], [$3=], [AC_CHECK_LIB([$2], [$1], [$3=-l$2], [AC_MSG_ERROR([no library has $1])])])
])

dnl POLYCM_COMPILE_FLAGS(VARIABLE, FLAGS): append those FLAGS to VARIABLE that the compiler knows.
AC_DEFUN([POLYCM_COMPILE_FLAGS], [
	polycm_save_CFLAGS=$CFLAGS
	for polycm_flag in $2; do
		AC_MSG_CHECKING([whether $CC takes $polycm_flag])
		CFLAGS="$polycm_save_CFLAGS -Werror $polycm_flag"
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([extern int polycm_flag_test; int polycm_flag_test;])],
			[$1="$$1 $polycm_flag"
			AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])])
	done
	CFLAGS=$polycm_save_CFLAGS
	AC_SUBST([$1])
])

dnl POLYCM_CAN_LINK(FLAGS, IF-TRUE, IF-FALSE)
AC_DEFUN([POLYCM_CAN_LINK], [
	AC_MSG_CHECKING([whether $CC links with $1])
	polycm_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $1"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdlib.h>]], [[free(malloc(1));]])],
		[polycm_can_link=yes], [polycm_can_link=no])
	CFLAGS=$polycm_save_CFLAGS
	AC_MSG_RESULT([$polycm_can_link])
	AS_IF([test "$polycm_can_link" = yes], [$2], [$3])
])
