# SPDX-License-Identifier: BSD-2-Clause
#
# Makes of a RoCE record what InfiniBand must do, where that is the same but for values. Read by compare.

# Devices: link layer and transport; one that cannot flush (rxe can); packets of 4096 bytes.
s/link layer 2$/link layer 1/
s/access 0x30e\b/access 0xe/
s/\bmtu 3\b/mtu 5/

# A path inside of one subnet needs no global routing header, and so has no traffic class.
s/\bQP ah global 1 dgid zero hop 0/QP ah global 0 dgid zero hop 0/
/MULTICAST_JOIN/!s/\bglobal 1 dgid (client|server|second)[46] hop 64 tc [0-9]+/global 0 dgid zero hop 0 tc 0/

# GIDs are those of the ports, known from the resolved address on; the P_Key is the subnet's.
s/route: sgid (client|server|second|loopback)[46] dgid (client|server|second|loopback|any)[46] pkey 0x(0|ffff),/route: sgid linklocal dgid linklocal pkey 0xffff,/

s/^  sgid (client|server|second)[46] dgid (client|server|second)[46] hop 0/  sgid linklocal dgid linklocal hop 0/

# The subnet administrator's path records: packets live for 2^18 * 4.096 us, not 2^16, as long as no option says
# otherwise; what follows from that: the ACK time-out, and the time that a request waits for an answer.
s/sgid (client|server|second)[46] dgid (client|server|second)[46] hop 64 tc [0-9]+ sl 0 pkey 0xffff mtu 5 rate 0 life 16 /sgid linklocal dgid linklocal hop 0 tc 0 sl 0 pkey 0xffff mtu 5 rate 16 life 18 /
s/\btimeout 17\b/timeout 19/
s/after about 73728 ms/after 98300 ms, not 73728/
s/after about 4608 ms/after 6140 ms, not 4608/

# So does what a message waits for its acknowledgement.
s/after about 1074 ms/after 4290 ms, not 1074/

# Inside of a subnet only messages to groups have a global routing header.
s/^((client|child) received .*, flags 0x)1\b/\10/
s/^((client|child) received .*, flags 0x)3\b/\12/

# Groups have GIDs of RFC 4391, and need no router.
/MULTICAST_JOIN/s/dgid multicast4 hop 64/dgid other hop 0/
