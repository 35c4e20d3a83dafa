# What the other kernels take from number_columns.py, where it is told.

cdef long long *numbers_of(object view) except? NULL
