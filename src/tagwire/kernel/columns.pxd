# What pure-Python mode cannot say of columns: their memory, and handing it over by Arrow's C data interface.

cimport cython
from tagwire.kernel.programs cimport Program

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    typedef struct tagwire_column {
        int kind, flags, tag, size, absent, place, children;
        long long weight;
        struct tagwire_column *first, *next, *tags;
        Py_ssize_t length, room, data_room, default_size;
        unsigned char *values, *validity, *data;
        const unsigned char *default_bytes;
    } tagwire_column;

    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    struct ArrowArray {
        int64_t length, null_count, offset, n_buffers, n_children;
        const void **buffers;
        struct ArrowArray **children;
        struct ArrowArray *dictionary;
        void (*release)(struct ArrowArray *);
        void *private_data;
    };
    #endif

    #define TAGWIRE_BOOL 1
    #define TAGWIRE_STRUCT 13
    #define TAGWIRE_LIST 15
    #define TAGWIRE_SLACK (1 << 16)

    static inline int tagwire_has_ends(const tagwire_column *column) {
        return column->kind == TAGWIRE_LIST || (column->size == 0 && column->kind != TAGWIRE_STRUCT && column->kind != TAGWIRE_BOOL);
    }

    static inline size_t tagwire_value_bytes(const tagwire_column *column, Py_ssize_t count) {
        if (tagwire_has_ends(column))
            return 4 * ((size_t) count + 1);
        return column->kind == TAGWIRE_BOOL ? ((size_t) count + 7) / 8 + 8 : (size_t) count * column->size + 8;
    }

    /* Room for `room` elements in all, here and in the fields of a struct. Never gives room back. */
    static inline int tagwire_grow(tagwire_column *column, Py_ssize_t room) {
        unsigned char *moved;
        tagwire_column *field;
        Py_ssize_t before = column->room;
        if (room <= before)
            return 1;
        if (room < 2 * before)
            room = 2 * before;
        if (column->kind == TAGWIRE_STRUCT) {
            for (field = column->first; field != NULL; field = field->next)
                if (field->place >= 0 && !tagwire_grow(field, room))
                    return 0;
        } else {
            moved = (unsigned char *) PyMem_RawRealloc(column->values, tagwire_value_bytes(column, room));
            if (moved == NULL)
                return 0;
            if (column->values == NULL && tagwire_has_ends(column))
                memset(moved, 0, 4);
            column->values = moved;
        }
        if (column->validity != NULL) {
            moved = (unsigned char *) PyMem_RawRealloc(column->validity, ((size_t) room + 7) / 8);
            if (moved == NULL)
                return 0;
            column->validity = moved;
        }
        column->room = room;
        return 1;
    }

    static inline int tagwire_grow_data(tagwire_column *column, Py_ssize_t room) {
        unsigned char *moved;
        if (room < 2 * column->data_room)
            room = 2 * column->data_room;
        if (room < 64)
            room = 64;
        moved = (unsigned char *) PyMem_RawRealloc(column->data, room);
        if (moved == NULL)
            return 0;
        column->data = moved;
        column->data_room = room;
        return 1;
    }

    static inline void tagwire_set_bit(unsigned char *bits, Py_ssize_t at, int value) {
        unsigned char mask = (unsigned char) (1 << (at & 7));
        if (value)
            bits[at >> 3] |= mask;
        else
            bits[at >> 3] &= (unsigned char) ~mask;
    }

    /* Marks element `length` as null, which makes all before it valid where nothing was null yet. */
    static inline int tagwire_mark_null(tagwire_column *column) {
        if (column->validity == NULL) {
            column->validity = (unsigned char *) PyMem_RawMalloc(((size_t) column->room + 7) / 8);
            if (column->validity == NULL)
                return 0;
            memset(column->validity, 0xFF, ((size_t) column->length + 8) / 8);
        }
        tagwire_set_bit(column->validity, column->length, 0);
        return 1;
    }

    static inline int tagwire_is_ascii(const unsigned char *at, Py_ssize_t size) {
        uint64_t block, seen = 0;
        for (; size >= 8; at += 8, size -= 8) {
            memcpy(&block, at, 8);
            seen |= block;
        }
        while (size-- > 0)
            seen |= at[size];
        return (seen & 0x8080808080808080ULL) == 0;
    }

    /* Appends short text, checked and copied in one go, where all of it is ASCII and there is room; else 0. */
    static inline int tagwire_append_ascii(tagwire_column *column, const unsigned char *at, Py_ssize_t size) {
        int32_t *ends = (int32_t *) column->values + column->length;
        unsigned char *to = column->data + ends[0];
        uint64_t block, seen = 0;
        uint32_t half, other;
        Py_ssize_t done;
        if (size > column->data_room - ends[0] || size > INT32_MAX - ends[0])
            return 0;
        if (size >= 8) {
            for (done = 0; done < size - 8; done += 8) {
                memcpy(&block, at + done, 8);
                memcpy(to + done, &block, 8);
                seen |= block;
            }
            memcpy(&block, at + size - 8, 8);
            memcpy(to + size - 8, &block, 8);
            seen |= block;
        } else if (size >= 4) {
            memcpy(&half, at, 4);
            memcpy(&other, at + size - 4, 4);
            memcpy(to, &half, 4);
            memcpy(to + size - 4, &other, 4);
            seen = half | other;
        } else {
            for (done = 0; done < size; done++)
                seen |= to[done] = at[done];
        }
        if (seen & 0x8080808080808080ULL)
            return 0;
        if (column->validity != NULL)
            tagwire_set_bit(column->validity, column->length, 1);
        ends[1] = ends[0] + (int32_t) size;
        column->length++;
        return 1;
    }

    /* A copy whose links lead to the copy's own columns. */
    static inline tagwire_column *tagwire_copy(const tagwire_column *columns, Py_ssize_t count) {
        tagwire_column *copy = (tagwire_column *) PyMem_RawMalloc(count * sizeof *copy);
        Py_ssize_t i;
        if (copy == NULL)
            return NULL;
        memcpy(copy, columns, count * sizeof *copy);
        for (i = 0; i < count; i++) {
            if (copy[i].first != NULL)
                copy[i].first = copy + (copy[i].first - columns);
            if (copy[i].next != NULL)
                copy[i].next = copy + (copy[i].next - columns);
            if (copy[i].tags != NULL)
                copy[i].tags = copy + (copy[i].tags - columns);
        }
        return copy;
    }

    static inline void tagwire_free_columns(tagwire_column *columns, Py_ssize_t count) {
        Py_ssize_t i;
        for (i = 0; columns != NULL && i < count; i++) {
            PyMem_RawFree(columns[i].values);
            PyMem_RawFree(columns[i].validity);
            PyMem_RawFree(columns[i].data);
        }
        PyMem_RawFree(columns);
    }

    static inline void tagwire_release(struct ArrowArray *array) {
        int64_t i;
        for (i = 0; i < array->n_children; i++)
            if (array->children[i]->release != NULL)
                array->children[i]->release(array->children[i]);
        for (i = 0; i < array->n_buffers; i++)
            PyMem_RawFree((void *) array->buffers[i]);
        PyMem_RawFree(array->private_data);
        array->release = NULL;
    }

    static inline unsigned char *tagwire_cut(unsigned char *memory, size_t room, size_t used) {
        unsigned char *moved;
        if (used < 8)
            used = 8;
        if (memory == NULL)
            return (unsigned char *) PyMem_RawCalloc(1, used);
        if (room < used + TAGWIRE_SLACK)
            return memory;
        moved = (unsigned char *) PyMem_RawRealloc(memory, used);
        return moved == NULL ? memory : moved;
    }

    /* Moves the column's memory to `array`, which then owns it. On failure 0, and nothing is left to release. */
    static inline int tagwire_export(tagwire_column *column, struct ArrowArray *array) {
        struct block {
            const void *buffers[3];
        } *block;
        struct ArrowArray *arrays;
        tagwire_column *field;
        int whole = 1;
        Py_ssize_t count = column->children, used;
        memset(array, 0, sizeof *array);
        block = (struct block *) PyMem_RawCalloc(1, sizeof *block + count * (sizeof(struct ArrowArray *) + sizeof(struct ArrowArray)));
        if (block == NULL)
            return 0;
        array->private_data = block;
        array->buffers = block->buffers;
        array->children = (struct ArrowArray **) (block + 1);
        arrays = (struct ArrowArray *) (array->children + count);
        array->n_children = count;
        for (used = 0; used < count; used++)
            array->children[used] = arrays + used;
        array->release = tagwire_release;
        array->length = column->length;
        array->null_count = column->validity == NULL ? 0 : -1;
        array->n_buffers = 1;
        block->buffers[0] = column->validity;
        column->validity = NULL;
        if (column->kind != TAGWIRE_STRUCT) {
            used = tagwire_has_ends(column) && column->values != NULL ? ((int32_t *) column->values)[column->length] : 0;
            column->values = tagwire_cut(
                column->values, tagwire_value_bytes(column, column->room), tagwire_value_bytes(column, column->length));
            whole &= column->values != NULL;
            block->buffers[1] = column->values;
            column->values = NULL;
            array->n_buffers = 2;
            if (tagwire_has_ends(column) && column->kind != TAGWIRE_LIST) {
                column->data = tagwire_cut(column->data, column->data_room, used);
                whole &= column->data != NULL;
                block->buffers[2] = column->data;
                column->data = NULL;
                array->n_buffers = 3;
            }
        }
        for (field = column->first; field != NULL; field = field->next)
            if (field->place >= 0)
                whole &= tagwire_export(field, arrays + field->place);
        if (!whole)
            tagwire_release(array);
        return whole;
    }

    static inline void tagwire_discard(struct ArrowArray *array) {
        if (array != NULL && array->release != NULL)
            array->release(array);
        PyMem_RawFree(array);
    }
    """
    ctypedef struct Column "tagwire_column":
        int kind
        int flags
        int tag
        int size
        int absent
        int place
        int children
        long long weight
        Column *first
        Column *next
        Column *tags
        Py_ssize_t length
        Py_ssize_t room
        Py_ssize_t data_room
        Py_ssize_t default_size
        unsigned char *values
        unsigned char *validity
        unsigned char *data
        const unsigned char *default_bytes
    cdef struct ArrowArray:
        Py_ssize_t length
    Column *copy_columns "tagwire_copy"(const Column *columns, Py_ssize_t count) noexcept
    bint grow_column "tagwire_grow"(Column *column, Py_ssize_t room) noexcept
    bint grow_data "tagwire_grow_data"(Column *column, Py_ssize_t room) noexcept
    void set_bit "tagwire_set_bit"(unsigned char *bits, Py_ssize_t at, int value) noexcept
    bint mark_null "tagwire_mark_null"(Column *column) noexcept
    bint is_ascii "tagwire_is_ascii"(const unsigned char *at, Py_ssize_t size) noexcept
    bint append_ascii "tagwire_append_ascii"(Column *column, const unsigned char *at, Py_ssize_t size) noexcept
    void free_columns "tagwire_free_columns"(Column *columns, Py_ssize_t count) noexcept
    bint export_column "tagwire_export"(Column *column, ArrowArray *array) noexcept
    void discard_array "tagwire_discard"(ArrowArray *array) noexcept

cdef extern from "Python.h":
    void *PyMem_RawCalloc(size_t count, size_t size)

cdef enum:
    LIST = 15  # a kind beyond the programs' operations
    FORBIDDEN = 64  # a flag beyond theirs: a struct that may not be read

# What stands for a tagged field that is left out.
cdef enum:
    ZERO = 0
    NULL = 1
    GIVEN = 2
    DEFAULTS = 3

# What stopped a row, where it was not its bytes.
cdef enum:
    PAST_2_GIB = 1
    NO_MEMORY = 2

@cython.final
cdef class Plan:
    cdef Program program
    cdef list nodes
    cdef readonly tuple outline
    cdef Py_ssize_t count
    cdef Column *columns

    cdef Column *linked(self, Py_ssize_t node)
    cdef Py_ssize_t add(self, int kind, int flags, int tag) except? -1
    cdef tuple add_struct(self, Py_ssize_t at, Py_ssize_t number, int depth)
    cdef object add_field(self, Py_ssize_t row, int depth)

cdef class Store:
    cdef Plan plan
    cdef Column *root
    cdef ArrowArray *array
    cdef int fault

    cdef int stop(self) except? -1
    cdef bint grow(self, Column *column, long long more) noexcept
    cdef void cut(self, Column *column, Py_ssize_t length) noexcept
    cdef bint append_null(self, Column *column) noexcept
    cdef void set_valid(self, Column *column) noexcept
    cdef void append_zero(self, Column *column) noexcept
    cdef void append_bool(self, Column *column, int value) noexcept
    cdef bint append_text(self, Column *column, const unsigned char *chunk, long long size) noexcept
    cdef bint append_default(self, Column *column) noexcept
