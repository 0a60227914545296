//! Values survive a round trip, and damage to any byte is an error or another value, never a crash.

use proptest::prelude::*;
use serialize::{
    Archive, ArchiveWriter, GlobalPolicy, NodeId, Pickle, PickleBuilder, Pickler, TensorRecord, Unpickler,
};

/// A recipe for a value; `Again` refers to an earlier container.
#[derive(Clone, Debug)]
enum Recipe {
    None,
    Bool(bool),
    Int(i64),
    BigInt(Vec<u8>),
    Float(f64),
    Complex(f64, f64),
    Str(String),
    Bytes(Vec<u8>),
    ByteArray(Vec<u8>),
    List(Vec<Recipe>),
    Tuple(Vec<Recipe>),
    Dict(Vec<(Recipe, Recipe)>),
    OrderedDict(Vec<(Recipe, Recipe)>),
    Set(Vec<Recipe>),
    FrozenSet(Vec<Recipe>),
    Tensor(Vec<u8>),
    Again(usize),
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let leaf = prop_oneof![
        Just(Recipe::None),
        any::<bool>().prop_map(Recipe::Bool),
        any::<i64>().prop_map(Recipe::Int),
        (-70000i64..70000).prop_map(Recipe::Int),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Recipe::BigInt),
        any::<f64>().prop_map(Recipe::Float),
        any::<(f64, f64)>().prop_map(|(re, im)| Recipe::Complex(re, im)),
        ".{0,12}".prop_map(Recipe::Str),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Recipe::Bytes),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Recipe::ByteArray),
        proptest::collection::vec(0u8..5, 0..4).prop_map(Recipe::Tensor),
        any::<usize>().prop_map(Recipe::Again),
    ];
    leaf.prop_recursive(5, 120, 8, |inner| {
        let items = proptest::collection::vec(inner.clone(), 0..8);
        let pairs = proptest::collection::vec((inner.clone(), inner), 0..5);
        prop_oneof![
            items.clone().prop_map(Recipe::List),
            items.clone().prop_map(Recipe::Tuple),
            items.clone().prop_map(Recipe::Set),
            items.prop_map(Recipe::FrozenSet),
            pairs.clone().prop_map(Recipe::Dict),
            pairs.prop_map(Recipe::OrderedDict),
        ]
    })
}

fn build(b: &mut PickleBuilder, made: &mut Vec<NodeId>, recipe: &Recipe) -> NodeId {
    let items = |b: &mut PickleBuilder, made: &mut Vec<NodeId>, items: &[Recipe]| {
        items.iter().map(|r| build(b, made, r)).collect::<Vec<_>>()
    };
    match recipe {
        Recipe::None => b.none(),
        Recipe::Bool(value) => b.bool(*value),
        Recipe::Int(value) => b.int(*value),
        Recipe::BigInt(bytes) => b.int_from_le_bytes(bytes),
        Recipe::Float(value) => b.float(*value),
        Recipe::Complex(re, im) => b.complex(*re, *im),
        Recipe::Str(text) => b.str(text.clone()),
        Recipe::Bytes(bytes) => b.bytes(bytes.clone()),
        Recipe::ByteArray(bytes) => b.bytearray(bytes.clone()),
        Recipe::Tensor(size) => {
            let size: Vec<i64> = size.iter().map(|&s| s.into()).collect();
            b.tensor(&TensorRecord::contiguous("float32", "0", "cpu", &size))
        }
        // Lists and dicts are registered before their items exist, so that these can refer back to them.
        Recipe::List(parts) => {
            let id = b.list(Vec::new());
            made.push(id);
            for part in parts {
                let item = build(b, made, part);
                b.append(id, item).unwrap();
            }
            id
        }
        Recipe::Dict(parts) | Recipe::OrderedDict(parts) => {
            let id = match recipe {
                Recipe::Dict(_) => b.dict(Vec::new()),
                _ => b.ordered_dict(Vec::new()),
            };
            made.push(id);
            for (key, value) in parts {
                let key = build(b, made, key);
                let value = build(b, made, value);
                b.set_item(id, key, value).unwrap();
            }
            id
        }
        Recipe::Tuple(parts) => {
            let parts = items(b, made, parts);
            b.tuple(parts)
        }
        Recipe::Set(parts) => {
            let parts = items(b, made, parts);
            b.set(parts)
        }
        Recipe::FrozenSet(parts) => {
            let parts = items(b, made, parts);
            b.frozenset(parts)
        }
        Recipe::Again(n) => match made.len() {
            0 => b.none(),
            count => made[n % count],
        },
    }
}

fn pickle_of(recipe: &Recipe) -> Pickle {
    let mut b = PickleBuilder::new();
    let root = build(&mut b, &mut Vec::new(), recipe);
    b.finish(root).unwrap()
}

/// Everything a reader of a checkpoint does; only its not crashing counts.
fn read_all(data: Vec<u8>) {
    let Ok(archive) = Archive::from_vec(data) else {
        return;
    };
    for policy in [GlobalPolicy::weights_only(), GlobalPolicy::any()] {
        let Ok(pickle) = archive.load_with(&policy) else {
            continue;
        };
        let _ = pickle.steps();
        let _ = Pickler::new().dump(&pickle);
        for id in pickle.ids() {
            if let Ok(Some(tensor)) = pickle.tensor_record(id) {
                let _ = archive.native_storage_for(&tensor.storage, &tensor.dtype);
            }
        }
    }
}

fn checkpoint() -> Vec<u8> {
    let mut b = PickleBuilder::new();
    let weight = b.tensor(&TensorRecord::contiguous("float32", "0", "cpu", &[2, 2]));
    let weight = b.parameter(weight, true);
    let raw = b.tensor(&TensorRecord::contiguous("uint16", "1", "cpu", &[3]));
    let (k0, k1) = (b.str("weight"), b.str("raw"));
    let root = b.ordered_dict(vec![(k0, weight), (k1, raw)]);
    let pickle = Pickler::new().dump(&b.finish(root).unwrap()).unwrap();
    let mut writer = ArchiveWriter::new(Vec::new(), "archive").unwrap();
    writer.write_checkpoint(&pickle, [("0", &[1; 16][..]), ("1", &[2; 6][..])]).unwrap();
    writer.finish().unwrap()
}

proptest! {
    #[test]
    fn values_survive(recipe in recipe()) {
        let pickle = pickle_of(&recipe);
        let bytes = Pickler::new().dump(&pickle).unwrap();
        let read = Unpickler::new().policy(GlobalPolicy::any()).load(&bytes).unwrap();
        prop_assert!(read.same_as(&pickle));
        // What was read is written the same way again.
        prop_assert_eq!(Pickler::new().dump(&read).unwrap(), bytes);
    }

    #[test]
    fn damaged_archives_never_crash(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut data = checkpoint();
        for (index, byte) in changes {
            let at = index.index(data.len());
            data[at] = byte;
        }
        read_all(data);
    }

    #[test]
    fn damaged_pickles_never_crash(
        recipe in recipe(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut data = Pickler::new().dump(&pickle_of(&recipe)).unwrap();
        for (index, byte) in changes {
            let at = index.index(data.len());
            data[at] = byte;
        }
        for policy in [GlobalPolicy::weights_only(), GlobalPolicy::any()] {
            if let Ok(pickle) = Unpickler::new().policy(policy).load(&data) {
                let _ = pickle.steps();
                let _ = Pickler::new().dump(&pickle);
            }
        }
    }

    #[test]
    fn noise_never_crashes(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Unpickler::new().policy(GlobalPolicy::any()).load(&data);
        read_all(data);
    }
}

#[test]
fn every_single_byte_damage_and_every_truncation() {
    let data = checkpoint();
    for n in 0..data.len() {
        assert!(Archive::from_vec(data[..n].to_vec()).is_err(), "{n} bytes");
    }
    for at in 0..data.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = data.clone();
            damaged[at] ^= flip;
            read_all(damaged);
        }
    }
}
