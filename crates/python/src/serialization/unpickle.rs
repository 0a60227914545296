//! A pickle's arena as Python objects.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PySet, PyTuple};
use serialize::{Construct, NodeId, Object, Pickle, Step, Value};

use super::error::{to_python, unpickling_error};
use crate::raw::objects::{self, intern};
use crate::raw::Res;

/// What Python decides.
pub(super) struct Callbacks<'a, 'py> {
    /// `find_global(module, name)`.
    pub(super) find_global: &'a Bound<'py, PyAny>,
    /// `persistent_load(id)`.
    pub(super) persistent_load: &'a Bound<'py, PyAny>,
    /// `new_object(cls, args, kwargs)`.
    pub(super) new_object: &'a Bound<'py, PyAny>,
    /// `set_state(object, state)`.
    pub(super) set_state: &'a Bound<'py, PyAny>,
}

/// Makes the object at the pickle's root.
pub(super) fn build<'py>(
    py: Python<'py>,
    pickle: &Pickle,
    callbacks: &Callbacks<'_, 'py>,
) -> Res<Bound<'py, PyAny>> {
    let objects = c10::try_filled(None, pickle.nodes().len())?;
    let mut builder = Builder { py, pickle, callbacks, objects };
    for step in pickle.steps().map_err(|e| to_python(&e))? {
        match step {
            Step::Create(id) => {
                let object = builder.create(id)?;
                builder.objects[id.index()] = Some(object);
            }
            Step::Fill(id) => builder.fill(id)?,
        }
    }
    builder.get(pickle.root())
}

struct Builder<'a, 'py> {
    py: Python<'py>,
    pickle: &'a Pickle,
    callbacks: &'a Callbacks<'a, 'py>,
    objects: Vec<Option<Bound<'py, PyAny>>>,
}

impl<'py> Builder<'_, 'py> {
    fn get(&self, id: NodeId) -> Res<Bound<'py, PyAny>> {
        match &self.objects[id.index()] {
            Some(object) => Ok(object.clone()),
            None => Err(unpickling_error("the pickle uses an object before it exists".to_owned()).into()),
        }
    }

    fn all(&self, ids: &[NodeId]) -> Res<Vec<Bound<'py, PyAny>>> {
        let mut all = c10::try_with_capacity(ids.len())?;
        for &id in ids {
            all.push(self.get(id)?);
        }
        Ok(all)
    }

    /// Makes an object; lists, dicts and sets are empty at first.
    fn create(&self, id: NodeId) -> Res<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match self.pickle.get(id) {
            Value::None => py.None().into_bound(py),
            Value::Bool(v) => objects::boolean(py, *v),
            Value::Int(v) => objects::int(py, *v)?.into_any(),
            Value::BigInt(bytes) => big_int(py, bytes)?,
            Value::Float(v) => objects::float(py, *v)?.into_any(),
            Value::Complex(re, im) => objects::complex(py, *re, *im)?.into_any(),
            Value::Str(v) => objects::string(py, v)?.into_any(),
            Value::SurrogateStr(v) => objects::bytes(py, v)?.call_method1(
                intern!(py, "decode")?,
                (intern!(py, "utf-8")?, intern!(py, "surrogatepass")?),
            )?,
            Value::Bytes(v) => objects::bytes(py, v)?.into_any(),
            Value::ByteArray(v) => objects::bytearray(py, v)?.into_any(),
            Value::List(_) => objects::empty_list(py)?.into_any(),
            Value::Dict(_) => objects::dict(py)?.into_any(),
            Value::Set(_) => objects::empty_set(py)?.into_any(),
            Value::Tuple(items) => objects::tuple(py, self.all(items)?)?.into_any(),
            Value::FrozenSet(items) => objects::frozenset(&objects::tuple(py, self.all(items)?)?)?.into_any(),
            Value::Global { module, name } => {
                let (module, name) = (objects::string(py, module)?, objects::string(py, name)?);
                self.callbacks.find_global.call1((module, name))?
            }
            Value::PersistentId(id) => self.callbacks.persistent_load.call1((self.get(*id)?,))?,
            Value::Object(object) => self.construct(object)?,
        })
    }

    fn construct(&self, object: &Object) -> Res<Bound<'py, PyAny>> {
        // Only what the file names may be called, and that has been checked; results of calls may not.
        if self.pickle.as_global(object.callable).is_none() {
            return Err(unpickling_error("Trying to call something that is not a global".to_owned()).into());
        }
        let callable = self.get(object.callable)?;
        let args = self.get(object.args)?.cast_into::<PyTuple>().map_err(PyErr::from)?;
        match object.construct {
            Construct::Reduce => Ok(callable.call1(args)?),
            Construct::NewObj | Construct::NewObjEx => {
                let kwargs = match object.kwargs {
                    Some(kwargs) => self.get(kwargs)?,
                    None => objects::dict(self.py)?.into_any(),
                };
                Ok(self.callbacks.new_object.call1((callable, args, kwargs))?)
            }
        }
    }

    /// Puts the contents into an object.
    fn fill(&self, id: NodeId) -> Res<()> {
        let object = self.get(id)?;
        match self.pickle.get(id) {
            Value::List(items) => {
                let list = object.cast::<PyList>()?;
                items
                    .iter()
                    .try_for_each(|&item| Ok::<_, crate::raw::Raised>(list.append(self.get(item)?)?))?;
            }
            Value::Dict(items) => self.set_items(&object, items)?,
            Value::Set(items) => {
                let set = object.cast::<PySet>()?;
                items.iter().try_for_each(|&item| Ok::<_, crate::raw::Raised>(set.add(self.get(item)?)?))?;
            }
            Value::Object(contents) => {
                if !contents.list_items.is_empty() {
                    object.call_method1(
                        intern!(self.py, "extend")?,
                        (objects::list(self.py, self.all(&contents.list_items)?)?,),
                    )?;
                }
                self.set_items(&object, &contents.dict_items)?;
                if let Some(state) = contents.state {
                    self.callbacks.set_state.call1((&object, self.get(state)?))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn set_items(&self, object: &Bound<'py, PyAny>, items: &[(NodeId, NodeId)]) -> Res<()> {
        for (key, value) in items {
            object.set_item(self.get(*key)?, self.get(*value)?)?;
        }
        Ok(())
    }
}

fn big_int<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let kwargs = objects::dict(py)?;
    kwargs.set_item(intern!(py, "signed")?, true)?;
    py.get_type::<PyInt>().call_method(
        intern!(py, "from_bytes")?,
        (objects::bytes(py, bytes)?, intern!(py, "little")?),
        Some(&kwargs),
    )
}
