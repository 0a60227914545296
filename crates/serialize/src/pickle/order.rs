//! The order in which to make the objects of a pickle, so that a consumer needs no recursion.

use super::value::{NodeId, Pickle, Value};
use crate::error::Result;
use crate::memory::reserve;

/// One thing to do for a consumer that turns nodes into objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the object. Everything it needs for that exists: all items of a tuple or frozenset, callable and arguments
    /// of an [`Object`](crate::Object), the id in a persistent id. Lists, dicts and sets are made empty.
    Create(NodeId),
    /// Put the items into a list, dict or set, or items and then the state into an object. They all exist.
    Fill(NodeId),
}

enum Task {
    Visit(NodeId),
    Create(NodeId),
    Fill(NodeId),
}

impl Pickle {
    /// The steps that make everything the root needs, the root included. Contents come before what uses them, except
    /// around a cycle, where an object is used before it is filled, as in Python.
    pub fn steps(&self) -> Result<Vec<Step>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Created,
        }

        let mut state = Vec::new();
        reserve(&mut state, self.nodes().len())?;
        state.resize(self.nodes().len(), State::New);
        let mut steps = Vec::new();
        // Containers whose content was not all made when they were left: they are part of a cycle through an immutable
        // value, and are filled once that exists.
        let mut deferred = Vec::new();
        let mut work = vec![Task::Visit(self.root())];
        while let Some(task) = work.pop() {
            reserve(&mut steps, 1)?;
            reserve(&mut deferred, 1)?;
            reserve(&mut work, 1)?;
            match task {
                Task::Visit(id) => {
                    if state[id.index()] != State::New {
                        continue;
                    }
                    let node = self.get(id);
                    if !created_empty(node) {
                        state[id.index()] = State::Open;
                        work.push(Task::Create(id));
                        push_children(node, true, &mut work)?;
                        continue;
                    }
                    state[id.index()] = State::Created;
                    steps.push(Step::Create(id));
                    work.push(Task::Fill(id));
                    push_children(node, false, &mut work)?;
                }
                Task::Create(id) => {
                    state[id.index()] = State::Created;
                    steps.push(Step::Create(id));
                    let node = self.get(id);
                    if has_content(node) && matches!(node, Value::Object(_)) {
                        work.push(Task::Fill(id));
                        push_children(node, false, &mut work)?;
                    }
                }
                Task::Fill(id) => {
                    let node = self.get(id);
                    if !has_content(node) {
                        continue;
                    }
                    let ready = node.for_each_child(|child| {
                        if state[child.index()] == State::Created {
                            Ok(())
                        } else {
                            Err(())
                        }
                    });
                    match ready {
                        Ok(()) => steps.push(Step::Fill(id)),
                        Err(()) => deferred.push(Step::Fill(id)),
                    }
                }
            }
        }
        reserve(&mut steps, deferred.len())?;
        steps.extend(deferred);
        Ok(steps)
    }
}

fn created_empty(node: &Value) -> bool {
    matches!(node, Value::List(_) | Value::Dict(_) | Value::Set(_))
}

fn has_content(node: &Value) -> bool {
    match node {
        Value::List(items) | Value::Set(items) => !items.is_empty(),
        Value::Dict(items) => !items.is_empty(),
        Value::Object(object) => {
            !object.list_items.is_empty() || !object.dict_items.is_empty() || object.state.is_some()
        }
        _ => false,
    }
}

/// Visits, first child first, what a node needs to be created, or what is put into it afterwards.
fn push_children(node: &Value, to_create: bool, work: &mut Vec<Task>) -> Result<()> {
    let start = work.len();
    let mut children = 0;
    node.for_each(|_| children += 1);
    reserve(work, children)?;
    match (node, to_create) {
        (Value::Object(object), true) => {
            let needed = [Some(object.callable), Some(object.args), object.kwargs];
            work.extend(needed.into_iter().flatten().map(Task::Visit));
        }
        (Value::Object(object), false) => {
            work.extend(object.list_items.iter().map(|&id| Task::Visit(id)));
            for &(key, value) in &object.dict_items {
                work.extend([Task::Visit(key), Task::Visit(value)]);
            }
            work.extend(object.state.map(Task::Visit));
        }
        _ => node.for_each(|id| work.push(Task::Visit(id))),
    }
    work[start..].reverse();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pickle::unpickler::Unpickler;

    fn steps(pickle: &[u8]) -> (Pickle, Vec<Step>) {
        let pickle = Unpickler::new().load(pickle).unwrap();
        let steps = pickle.steps().unwrap();
        (pickle, steps)
    }

    /// Everything a step needs must come before it.
    fn check(pickle: &Pickle, steps: &[Step]) {
        let mut made = vec![false; pickle.nodes().len()];
        for step in steps {
            let (id, filling) = match *step {
                Step::Create(id) => (id, false),
                Step::Fill(id) => (id, true),
            };
            let node = pickle.get(id);
            let mut needed = Vec::new();
            if filling || !created_empty(node) {
                push_children(node, !filling, &mut needed).unwrap();
            }
            for task in needed {
                if let Task::Visit(child) = task {
                    assert!(made[child.index()], "{child:?} is missing for {step:?}");
                }
            }
            assert_eq!(made[id.index()], filling, "{step:?}");
            made[id.index()] = true;
        }
        assert!(made[pickle.root().index()]);
    }

    #[test]
    fn contents_come_first() {
        // OrderedDict(a=[1, (2,)])
        let (pickle, steps) =
            steps(b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01X\x01\x00\x00\x00aq\x02]q\x03(K\x01K\x02\x85q\x04es.");
        check(&pickle, &steps);
        assert_eq!(steps.last(), Some(&Step::Fill(pickle.root())));
    }

    #[test]
    fn cycles_through_lists_and_tuples() {
        // r = []; r.append(r)
        let (pickle, found) = steps(b"\x80\x02]q\x00h\x00a.");
        check(&pickle, &found);
        assert_eq!(found.len(), 2);
        // t = ([],); t[0].append(t)
        let (pickle, found) = steps(b"\x80\x02]q\x00h\x00\x85q\x01a0h\x01.");
        check(&pickle, &found);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn depth_is_no_problem() {
        let mut bytes = b"N".to_vec();
        bytes.resize(1_000_001, 0x85);
        bytes.push(b'.');
        let (pickle, found) = steps(&bytes);
        check(&pickle, &found);
        assert_eq!(found.len(), 1_000_001);
    }
}
