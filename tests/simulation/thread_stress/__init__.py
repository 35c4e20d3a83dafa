"""What a world in which one thread runs at a time cannot show: races of real threads.

`python -m tests.simulation.thread_stress --seconds 60` runs all of it, with threads that take turns after a microsecond
and logs that check who holds their locks; `--plant NAME` with a defect that it has to find.
"""
