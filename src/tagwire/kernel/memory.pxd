# What pure-Python mode cannot say: slots by their offset, data kept out of the garbage collector's lists, big-endian loads and stores.
#
# Objects and lists are made here word by word, as CPython 3.11 to 3.14 lay them out and free them: their sources were read, and the
# kernels' tests run on them. setup.py knows the same versions, and refuses all others in words.

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #error "tagwire's kernels do not run on free-threaded CPython, whose objects are laid out otherwise; TAGWIRE_PURE=1 does without them"
    #endif
    #if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
    #error "tagwire's kernels know how CPython 3.11 to 3.14 lay out objects, and no other; TAGWIRE_PURE=1 does without them"
    #endif
    #include <stdint.h>
    #include <string.h>
    #include <structmember.h>

    static inline Py_ssize_t tagwire_slot_offset(PyObject *descriptor) {
        if (!PyObject_TypeCheck(descriptor, &PyMemberDescr_Type)) {
            PyErr_SetString(PyExc_TypeError, "not a slot");
            return -1;
        }
        return ((PyMemberDescrObject *) descriptor)->d_member->offset;
    }

    static inline void tagwire_slot_write(PyObject *object, Py_ssize_t offset, PyObject *value) {
        PyObject **slot = (PyObject **) ((char *) object + offset);
        PyObject *before = *slot;
        Py_INCREF(value);
        *slot = value;
        Py_XDECREF(before);
    }

    static inline PyObject *tagwire_slot_read(PyObject *object, Py_ssize_t offset) {
        PyObject *value = *(PyObject **) ((char *) object + offset);
        if (value == NULL) {
            PyErr_SetString(PyExc_AttributeError, "is not set");
            return NULL;
        }
        Py_INCREF(value);
        return value;
    }

    static inline int64_t tagwire_load16(const unsigned char *at) {
        return (int16_t) (((uint16_t) at[0] << 8) | at[1]);
    }

    static inline int64_t tagwire_load32(const unsigned char *at) {
        return (int32_t) (((uint32_t) at[0] << 24) | ((uint32_t) at[1] << 16) | ((uint32_t) at[2] << 8) | at[3]);
    }

    static inline int64_t tagwire_load64(const unsigned char *at) {
        return (int64_t) (((uint64_t) (uint32_t) tagwire_load32(at) << 32) | (uint32_t) tagwire_load32(at + 4));
    }

    #define TAGWIRE_GC_HEAD (2 * sizeof(void *))

    /* What types say whose objects have more in front than the collector's head: a dict, and since 3.12 weak references. */
    #if PY_VERSION_HEX >= 0x030C0000
    #define TAGWIRE_MORE_IN_FRONT (Py_TPFLAGS_MANAGED_DICT | Py_TPFLAGS_MANAGED_WEAKREF)
    #else
    #define TAGWIRE_MORE_IN_FRONT Py_TPFLAGS_MANAGED_DICT
    #endif

    /* An object of a collected type that never enters the collector's lists, its fields after the head all zero. */
    static inline PyObject *tagwire_new_untracked(PyObject *type) {
        PyTypeObject *kind = (PyTypeObject *) type;
        if (!PyType_IS_GC(kind) || kind->tp_itemsize != 0)
            return PyType_GenericAlloc(kind, 0);
        if (PyType_HasFeature(kind, TAGWIRE_MORE_IN_FRONT)) {
            PyObject *object = PyType_GenericAlloc(kind, 0);
            if (object != NULL)
                PyObject_GC_UnTrack(object);
            return object;
        }
        char *block = (char *) PyObject_Malloc(TAGWIRE_GC_HEAD + kind->tp_basicsize);
        if (block == NULL)
            return PyErr_NoMemory();
        memset(block, 0, TAGWIRE_GC_HEAD + kind->tp_basicsize);
        return PyObject_Init((PyObject *) (block + TAGWIRE_GC_HEAD), kind);
    }

    static inline void tagwire_untrack(PyObject *object) {
        PyObject_GC_UnTrack(object);
    }

    /* How an object of an adopted class ends: it has slots and nothing else, so every word after its head is one.
       Structs in structs, built by hand, may be nested without bound: past a depth they wait for the outermost to
       end, linked through a word of the collector's head, which is free. */
    static int tagwire_ending = 0;
    static PyObject *tagwire_waiting = NULL;

    static inline void tagwire_end_slots(PyObject *object, PyTypeObject *kind) {
        PyObject **slot = (PyObject **) (object + 1);
        PyObject **last = (PyObject **) ((char *) object + kind->tp_basicsize);
        for (; slot < last; slot++) {
            PyObject *value = *slot;
            *slot = NULL;
            Py_XDECREF(value);
        }
        PyObject_GC_Del(object);
        Py_DECREF(kind);
    }

    static inline void tagwire_end(PyObject *object) {
        PyObject_GC_UnTrack(object);
        if (tagwire_ending > 100) {
            ((PyObject **) object)[-1] = tagwire_waiting;
            tagwire_waiting = object;
            return;
        }
        tagwire_ending++;
        tagwire_end_slots(object, Py_TYPE(object));
        while (tagwire_ending == 1 && tagwire_waiting != NULL) {
            object = tagwire_waiting;
            tagwire_waiting = ((PyObject **) object)[-1];
            ((PyObject **) object)[-1] = NULL;
            tagwire_end_slots(object, Py_TYPE(object));
        }
        tagwire_ending--;
    }

    /* Gives a class the quick end above, where it is one of slots only. */
    static inline int tagwire_adopt(PyObject *type) {
        PyTypeObject *kind = (PyTypeObject *) type;
        if (!PyType_Check(type) || !PyType_HasFeature(kind, Py_TPFLAGS_HEAPTYPE) || !PyType_IS_GC(kind) ||
            kind->tp_dictoffset != 0 || kind->tp_weaklistoffset != 0 || kind->tp_itemsize != 0 ||
            PyType_HasFeature(kind, TAGWIRE_MORE_IN_FRONT) ||
            kind->tp_finalize != NULL || kind->tp_del != NULL) {
            PyErr_SetString(PyExc_TypeError, "not a class of slots only");
            return -1;
        }
        kind->tp_dealloc = tagwire_end;
        return 0;
    }

    /* A list that the collector does not see, its items still to be set. */
    static inline PyObject *tagwire_new_list(Py_ssize_t count) {
        PyObject *list = tagwire_new_untracked((PyObject *) &PyList_Type);
        if (list == NULL || count == 0)
            return list;
        ((PyListObject *) list)->ob_item = (PyObject **) PyMem_Calloc(count, sizeof(PyObject *));
        if (((PyListObject *) list)->ob_item == NULL) {
            Py_DECREF(list);
            return PyErr_NoMemory();
        }
        ((PyListObject *) list)->allocated = count;
        Py_SET_SIZE(list, count);
        return list;
    }

    static PyObject *tagwire_small[1024];

    static inline int tagwire_fill_small(void) {
        int number;
        for (number = 0; number < 1024; number++)
            if ((tagwire_small[number] = PyLong_FromLong(number - 256)) == NULL)
                return -1;
        return 0;
    }

    static inline PyObject *tagwire_number(int64_t value) {
        if (value >= -256 && value < 768) {
            PyObject *number = tagwire_small[value + 256];
            Py_INCREF(number);
            return number;
        }
        return PyLong_FromLongLong(value);
    }

    /* `count` int32 as a list that the collector does not see. */
    static inline PyObject *tagwire_int32_list(const unsigned char *at, Py_ssize_t count) {
        Py_ssize_t i;
        PyObject **items;
        PyObject *list = tagwire_new_untracked((PyObject *) &PyList_Type);
        if (list == NULL || count == 0)
            return list;
        items = (PyObject **) PyMem_Malloc(count * sizeof(PyObject *));
        if (items == NULL) {
            Py_DECREF(list);
            return PyErr_NoMemory();
        }
        ((PyListObject *) list)->ob_item = items;
        ((PyListObject *) list)->allocated = count;
        for (i = 0; i < count; i++) {
            if ((items[i] = tagwire_number(tagwire_load32(at + 4 * i))) == NULL) {
                Py_DECREF(list);
                return NULL;
            }
            Py_SET_SIZE(list, i + 1);
        }
        return list;
    }

    /* For an object just made: its slot is empty, and what is given is taken over. */
    static inline int tagwire_slot_fill(PyObject *object, Py_ssize_t offset, PyObject *value) {
        if (value == NULL)
            return -1;
        *(PyObject **) ((char *) object + offset) = value;
        return 0;
    }

    #define tagwire_slot_number(object, offset, value) tagwire_slot_fill(object, offset, tagwire_number(value))
    #define tagwire_slot_int32_list(object, offset, at, count) \
        tagwire_slot_fill(object, offset, tagwire_int32_list(at, count))

    /* Whether an object is an int, not a bool, that fits 30 bits: then its value is in *number. */
    static inline int tagwire_is_small_int(PyObject *object, long long *number) {
        if (!PyLong_CheckExact(object))
            return 0;
    #if PY_VERSION_HEX >= 0x030C0000
        if (!PyUnstable_Long_IsCompact((PyLongObject *) object))
            return 0;
        *number = PyUnstable_Long_CompactValue((PyLongObject *) object);
        return 1;
    #else
        Py_ssize_t size = Py_SIZE(object);
        if (size > 1 || size < -1)
            return 0;
        *number = size * (long long) ((PyLongObject *) object)->ob_digit[0];
        return 1;
    #endif
    }

    static inline void tagwire_store16(char *at, uint64_t value) {
        at[0] = (char) (value >> 8);
        at[1] = (char) value;
    }

    static inline void tagwire_store32(char *at, uint64_t value) {
        at[0] = (char) (value >> 24);
        at[1] = (char) (value >> 16);
        at[2] = (char) (value >> 8);
        at[3] = (char) value;
    }

    static inline void tagwire_store64(char *at, uint64_t value) {
        tagwire_store32(at, value >> 32);
        tagwire_store32(at + 4, value);
    }

    /* Whether the slot holds an int as tagwire_is_small_int says; nothing is taken of it but its value. */
    static inline int tagwire_slot_small_int(PyObject *object, Py_ssize_t offset, long long *number) {
        PyObject *value = *(PyObject **) ((char *) object + offset);
        return value != NULL && tagwire_is_small_int(value, number);
    }

    /* Stores the items of a list as int32 as far as they are small ints; returns how many. */
    static inline Py_ssize_t tagwire_store_small_ints(PyObject *list, char *at) {
        Py_ssize_t i, count = PyList_GET_SIZE(list);
        long long number;
        for (i = 0; i < count && tagwire_is_small_int(PyList_GET_ITEM(list, i), &number); i++)
            tagwire_store32(at + 4 * i, number);
        return i;
    }

    static inline int tagwire_store_128(PyObject *number, char *at) {
        if (number == NULL || !PyLong_Check(number)) {
            PyErr_SetString(PyExc_TypeError, "not a number");
            return -1;
        }
    #if PY_VERSION_HEX >= 0x030D0000
        return _PyLong_AsByteArray((PyLongObject *) number, (unsigned char *) at, 16, 0, 0, 1);
    #else
        return _PyLong_AsByteArray((PyLongObject *) number, (unsigned char *) at, 16, 0, 0);
    #endif
    }

    static inline PyObject *tagwire_unsigned_128(const unsigned char *at) {
        return _PyLong_FromByteArray(at, 16, 0, 0);
    }
    """
    Py_ssize_t slot_offset "tagwire_slot_offset"(object descriptor) except -1
    void slot_write "tagwire_slot_write"(object instance, Py_ssize_t offset, object value)
    object slot_read "tagwire_slot_read"(object instance, Py_ssize_t offset)
    object new_untracked "tagwire_new_untracked"(object kind)
    void untrack "tagwire_untrack"(object instance)
    int adopt "tagwire_adopt"(object kind) except -1
    object new_list "tagwire_new_list"(Py_ssize_t count)
    object int32_list "tagwire_int32_list"(const unsigned char *at, Py_ssize_t count)
    int fill_small "tagwire_fill_small"() except -1
    int slot_int32_list "tagwire_slot_int32_list"(object instance, Py_ssize_t offset, const unsigned char *at, Py_ssize_t count) except -1
    int slot_number "tagwire_slot_number"(object instance, Py_ssize_t offset, long long value) except -1
    bint slot_small_int "tagwire_slot_small_int"(object instance, Py_ssize_t offset, long long *number) noexcept
    Py_ssize_t store_small_ints "tagwire_store_small_ints"(list items, char *at) noexcept
    int store_128 "tagwire_store_128"(object number, char *at) except -1
    long long load16 "tagwire_load16"(const unsigned char *at) noexcept
    long long load32 "tagwire_load32"(const unsigned char *at) noexcept
    long long load64 "tagwire_load64"(const unsigned char *at) noexcept
    void store16 "tagwire_store16"(char *at, unsigned long long value) noexcept
    void store32 "tagwire_store32"(char *at, unsigned long long value) noexcept
    void store64 "tagwire_store64"(char *at, unsigned long long value) noexcept
    object unsigned_128 "tagwire_unsigned_128"(const unsigned char *at)

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeUTF8(const char *data, Py_ssize_t size, const char *errors)
    object PyBytes_FromStringAndSize(const char *data, Py_ssize_t size)
    char *PyBytes_AS_STRING(object data)
    void PyList_SET_ITEM(object items, Py_ssize_t index, object item)
    void Py_INCREF(object item)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
