#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Makes configure and what it needs, in a fresh checkout.
set -e
cd "$(dirname "$0")"
exec autoreconf -fi "$@"
