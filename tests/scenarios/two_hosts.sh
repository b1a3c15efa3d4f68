#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Some scenarios with client and server on two hosts, over the provider ofi, held against what librdmacm did on the
# kernel. `two-hosts' without names plays all.

set -u
here=${abs_top_srcdir:?start it with ./run}/tests/scenarios
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
sample=(accept accept-data cross-connect data-kinds data-send dgram-send disconnect disconnect-destroy ece-both ep-active
	ep-passive group-message ipv6-accept killed-before-taking multicast-join reject-nobody-listens
	resolve-after-failure response sync-active thread-waits ud)
TRANSPORTS="${TRANSPORTS-roce iwarp}" "$here/two-hosts" -j 24 "$work/results" "${sample[@]/#/=}"
