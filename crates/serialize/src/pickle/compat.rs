//! The Python 2 names that pickles up to protocol 2 use for modules and builtins (`pickle`'s `fix_imports`).

/// (Python 2 module, Python 3 module)
const MODULES: &[(&str, &str)] = &[
    ("__builtin__", "builtins"),
    ("copy_reg", "copyreg"),
    ("Queue", "queue"),
    ("repr", "reprlib"),
    ("_abcoll", "collections.abc"),
    ("UserDict", "collections"),
    ("UserList", "collections"),
    ("UserString", "collections"),
    ("whichdb", "dbm"),
    ("StringIO", "io"),
    ("cStringIO", "io"),
];

/// A module and a name in it.
type Name = (&'static str, &'static str);

/// ((Python 2 module, name), (Python 3 module, name)); these win over [`MODULES`].
const NAMES: &[(Name, Name)] = &[
    (("__builtin__", "xrange"), ("builtins", "range")),
    (("__builtin__", "reduce"), ("functools", "reduce")),
    (("__builtin__", "intern"), ("sys", "intern")),
    (("__builtin__", "unichr"), ("builtins", "chr")),
    (("__builtin__", "unicode"), ("builtins", "str")),
    (("__builtin__", "long"), ("builtins", "int")),
    (("itertools", "izip"), ("builtins", "zip")),
    (("itertools", "imap"), ("builtins", "map")),
    (("itertools", "ifilter"), ("builtins", "filter")),
    (("itertools", "ifilterfalse"), ("itertools", "filterfalse")),
    (("itertools", "izip_longest"), ("itertools", "zip_longest")),
    (("UserDict", "IterableUserDict"), ("collections", "UserDict")),
    (("UserList", "UserList"), ("collections", "UserList")),
    (("UserString", "UserString"), ("collections", "UserString")),
];

/// Names that only exist the other way round: read as they are, written under an old name.
const WRITTEN_MODULES: &[(&str, &str)] = &[("builtins", "__builtin__"), ("copyreg", "copy_reg")];

/// The Python 3 name of a global in a file.
pub(crate) fn to_python3<'a>(module: &'a str, name: &'a str) -> (&'a str, &'a str) {
    if let Some(&(_, new)) = NAMES.iter().find(|n| n.0 == (module, name)) {
        return new;
    }
    match MODULES.iter().find(|m| m.0 == module) {
        Some(&(_, new)) => (new, name),
        None => (module, name),
    }
}

/// The name that protocol 2 writes for a Python 3 global.
pub(crate) fn to_python2<'a>(module: &'a str, name: &'a str) -> (&'a str, &'a str) {
    if let Some(&(old, _)) = NAMES.iter().find(|n| n.1 == (module, name)) {
        return old;
    }
    match WRITTEN_MODULES.iter().find(|m| m.0 == module) {
        Some(&(_, old)) => (old, name),
        None => (module, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_both_ways() {
        assert_eq!(to_python3("__builtin__", "set"), ("builtins", "set"));
        assert_eq!(to_python3("__builtin__", "long"), ("builtins", "int"));
        assert_eq!(to_python3("torch", "Size"), ("torch", "Size"));
        assert_eq!(to_python2("builtins", "set"), ("__builtin__", "set"));
        assert_eq!(to_python2("builtins", "int"), ("__builtin__", "long"));
        assert_eq!(to_python2("collections", "OrderedDict"), ("collections", "OrderedDict"));
    }
}
