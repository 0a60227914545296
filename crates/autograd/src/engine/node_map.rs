//! Maps keyed by a node's identity.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::node::Node;

/// The address of a node that the graph keeps alive while the key is in use; never dereferenced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct NodeKey(usize);

impl NodeKey {
    #[inline]
    pub(super) fn of(node: &Node) -> Self {
        Self(node.as_ptr() as usize)
    }
}

/// Spreads an address over the word: a multiplication, as in FxHash. Addresses aren't chosen by adversaries.
#[derive(Default)]
pub(super) struct PtrHasher(u64);

impl Hasher for PtrHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }
    #[inline]
    fn write_usize(&mut self, value: usize) {
        let mixed = (self.0.rotate_left(5) ^ value as u64).wrapping_mul(0x517c_c1b7_2722_0a95);
        // The table takes its control bits from the top and its index from the bottom.
        self.0 = mixed ^ (mixed >> 32);
    }
}

pub(super) type NodeMap<V> = HashMap<NodeKey, V, BuildHasherDefault<PtrHasher>>;
pub(super) type NodeSet = HashSet<NodeKey, BuildHasherDefault<PtrHasher>>;
