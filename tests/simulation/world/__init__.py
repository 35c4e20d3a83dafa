"""A simulated world: real code of clients and brokers, in one process, decided by one seed.

What is simulated is what a program asks its system for: time, threads, sockets, files, randomness. `installed` puts
that in the place of the standard library's before tagwire is imported, so that nothing in tagwire knows where it runs.

- `scheduler`: every simulated thread is a real one, of which one has the baton. At a switch point (a lock, a wait, a
  turn of an event loop, an operation of the disk) it may pass it on; the seed says to whom. Time passes only where
  nobody can run, and then at once. A world in which nobody can run and nothing is due is a Deadlock, one in which steps
  are taken and no time passes a BusyLoop; both tell every thread's stack.
- `primitives`, `threads`, `loop`, `selecting`, `transports`: locks, pools, event loops and selectors over that.
  Callbacks of a loop run in the order that asyncio promises; where it promises none, in the seed's.
- `processes`: threads, loops, sockets, files and a wall clock that belong together. One that is killed is never given
  the baton again: as after `kill -9`, nothing of it is unwound. Its threads stay parked until the process of the
  operating system ends, so that a world is best given one of its own, by fork.
- `network`, `disk`: what processes share, and what outlives them.
- `world`: all of it together, and the trace: a line for every switch and for what the parts tell.

Nothing may depend on what differs between two runs of one seed: addresses of objects, the hashes of strings, the
collector of garbage (which is off), real time, the number of processors.
"""
