# What pure-Python mode cannot say: slots by their offset, data kept out of the garbage collector's lists, big-endian loads and stores.

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #include <structmember.h>

    static Py_ssize_t tagwire_slot_offset(PyObject *descriptor) {
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

    /* For classes with slots only: allocated as the collector's, but never entered in its lists. */
    static inline PyObject *tagwire_new_untracked(PyObject *type) {
        PyTypeObject *kind = (PyTypeObject *) type;
        PyObject *object;
        if (!PyType_IS_GC(kind) || kind->tp_itemsize != 0)
            return PyType_GenericAlloc(kind, 0);
        object = _PyObject_GC_New(kind);
        if (object != NULL)
            memset((char *) object + sizeof(PyObject), 0, kind->tp_basicsize - sizeof(PyObject));
        return object;
    }

    static inline void tagwire_untrack(PyObject *object) {
        PyObject_GC_UnTrack(object);
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

    static inline PyObject *tagwire_unsigned_128(const unsigned char *at) {
        return _PyLong_FromByteArray(at, 16, 0, 0);
    }
    """
    Py_ssize_t slot_offset "tagwire_slot_offset"(object descriptor) except -1
    void slot_write "tagwire_slot_write"(object instance, Py_ssize_t offset, object value)
    object slot_read "tagwire_slot_read"(object instance, Py_ssize_t offset)
    object new_untracked "tagwire_new_untracked"(object kind)
    void untrack "tagwire_untrack"(object instance)
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
    char *PyByteArray_AS_STRING(object data)
    int PyByteArray_Resize(object data, Py_ssize_t size) except -1
    object PyList_New(Py_ssize_t size)
    void PyList_SET_ITEM(object items, Py_ssize_t index, object item)
    void Py_INCREF(object item)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
