# Fields of `Record` as members: the interpreter reads a member in place, a property through a call several times as long.

cdef extern from *:
    """
    #include <structmember.h>

    /* Lets `name` read the field of `instance` in which `held` stands, for its whole type. */
    static int tagwire_read_in_place(PyObject *instance, const char *name, const char *doc, PyObject *held) {
        PyTypeObject *type = Py_TYPE(instance);
        Py_ssize_t offset = sizeof(PyObject);
        PyMemberDef *member;
        PyObject *descriptor;
        int result;
        while (offset < type->tp_basicsize && *(PyObject **) ((char *) instance + offset) != held)
            offset += sizeof(PyObject *);
        if (offset >= type->tp_basicsize) {
            PyErr_SetString(PyExc_TypeError, "not a field");
            return -1;
        }
        member = (PyMemberDef *) PyMem_Calloc(1, sizeof(PyMemberDef));  /* lives as long as the type: for ever */
        if (member == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        member->name = name;
        member->type = T_OBJECT_EX;
        member->offset = offset;
        member->flags = READONLY;
        member->doc = doc;
        descriptor = PyDescr_NewMember(type, member);
        if (descriptor == NULL)
            return -1;
        result = PyDict_SetItemString(type->tp_dict, name, descriptor);
        Py_DECREF(descriptor);
        PyType_Modified(type);
        return result;
    }

    /* As PyBytes_FromStringAndSize, which spends as much on its calls as on the bytes. */
    static inline PyObject *tagwire_bytes(const unsigned char *at, Py_ssize_t size) {
    #if !defined(Py_TRACE_REFS) && !defined(Py_REF_DEBUG)
        PyBytesObject *made;
        if (size < 2)
            return PyBytes_FromStringAndSize((const char *) at, size);
        made = (PyBytesObject *) PyObject_Malloc(offsetof(PyBytesObject, ob_sval) + 1 + size);
        if (made == NULL)
            return PyErr_NoMemory();
        /* Not by Py_SET_REFCNT: since 3.12 it leaves alone what looks immortal, as memory that was used before may. */
    #if PY_VERSION_HEX >= 0x030E0000 && SIZEOF_VOID_P > 4
        ((PyObject *) made)->ob_refcnt_full = 1;  /* and no flags */
    #else
        ((PyObject *) made)->ob_refcnt = 1;
    #endif
        Py_SET_TYPE((PyObject *) made, &PyBytes_Type);
        Py_SET_SIZE((PyVarObject *) made, size);
    /* Deprecated for those who would read it; who makes a bytes object has to set it. */
    #pragma GCC diagnostic push
    #pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        made->ob_shash = -1;
    #pragma GCC diagnostic pop
        memcpy(made->ob_sval, at, size);
        made->ob_sval[size] = 0;
        return (PyObject *) made;
    #else
        return PyBytes_FromStringAndSize((const char *) at, size);
    #endif
    }
    """
    object new_bytes "tagwire_bytes"(const unsigned char *at, Py_ssize_t size)
    int read_in_place "tagwire_read_in_place"(
        object instance, const char *name, const char *doc, object held
    ) except -1
