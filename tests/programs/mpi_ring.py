# SPDX-License-Identifier: BSD-2-Clause
#
# Passes 1 MiB around a ring of processes, 20 times, and adds their numbers up. The first one prints who has taken part.
from mpi4py import MPI

SIZE = 1 << 20
TURNS = 20

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
message = bytearray([rank]) * SIZE
for turn in range(TURNS):
    came = bytearray(SIZE)
    world.Sendrecv(message, (rank + 1) % size, 0, came, (rank - 1) % size, 0)
    message = came
assert message == bytearray([(rank - TURNS) % size]) * SIZE
assert world.allreduce(rank) == size * (size - 1) // 2
hosts = world.gather(MPI.Get_processor_name())
if rank == 0:
    print(size, 'passed, on', *hosts)
