/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * polycm/sim_cxx.h - POLYCM_SIM_FAULT() for C++, from C++11 on; <polycm/sim.h>
 * includes it.  Before C++20 designated initializers are an extension that g++
 * and clang++ have.  List the members in the order of the struct: C++ wants
 * that.
 */
#ifndef POLYCM_SIM_CXX_H
#define POLYCM_SIM_CXX_H

#include <polycm/sim.h>

/* g++ warns of members that are left out, which in this macro is the point. */
#pragma GCC system_header

/* Takes the address of a temporary, which exists to the end of the full expression. */
struct polycm_sim_fault_temporary {
	struct polycm_sim_fault_rule rule;

	operator const struct polycm_sim_fault_rule *() const
	{
		return &rule;
	}
};

#define POLYCM_SIM_FAULT(...)                                                                      \
	(__extension__ static_cast<const struct polycm_sim_fault_rule *>(                          \
		polycm_sim_fault_temporary{ polycm_sim_fault_rule{                                 \
			.size = sizeof(struct polycm_sim_fault_rule), __VA_ARGS__ } }))

#endif
