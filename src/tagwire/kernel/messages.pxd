# What pure-Python mode cannot say: reading and writing slots by their offset, and leaving acyclic data out of the garbage collector's lists.

cdef extern from *:
    """
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
            PyErr_SetString(PyExc_AttributeError, "attribute is not set");
            return NULL;
        }
        Py_INCREF(value);
        return value;
    }

    static inline PyObject *tagwire_new_untracked(PyObject *type) {
        PyObject *object = PyType_GenericAlloc((PyTypeObject *) type, 0);
        if (object != NULL && PyObject_IS_GC(object))
            PyObject_GC_UnTrack(object);
        return object;
    }

    static inline void tagwire_untrack(PyObject *object) {
        if (PyObject_GC_IsTracked(object))
            PyObject_GC_UnTrack(object);
    }
    """
    Py_ssize_t slot_offset "tagwire_slot_offset"(object descriptor) except -1
    void slot_write "tagwire_slot_write"(object instance, Py_ssize_t offset, object value)
    object slot_read "tagwire_slot_read"(object instance, Py_ssize_t offset)
    object new_untracked "tagwire_new_untracked"(object kind)
    void untrack "tagwire_untrack"(object instance)

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    object PyUnicode_DecodeUTF8(const char *data, Py_ssize_t size, const char *errors)
    object PyBytes_FromStringAndSize(const char *data, Py_ssize_t size)
    char *PyBytes_AS_STRING(object data)
    char *PyByteArray_AS_STRING(object data)
    int PyByteArray_Resize(object data, Py_ssize_t size) except -1

from libc.string cimport memcpy, memmove
