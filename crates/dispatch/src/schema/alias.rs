//! Alias annotations: which arguments and returns may share memory, and which are written.

use std::fmt;

use smallvec::SmallVec;

use super::printer;

/// The set that stands for "may alias anything".
pub const WILDCARD: &str = "*";

/// Names of alias sets, last name first and without repeats, so that equal sets compare equal; PyTorch registers
/// `(a|b)` as `(b|a)` too. A set with the wildcard is only that.
pub type AliasSet = SmallVec<[String; 1]>;

/// An annotation such as `(a)`, `(a!)`, `(a -> *)`, `(a! -> a|b)` or `(*)`.
///
/// On a list the annotation after the brackets is the list's own and the one before them its elements':
/// `Tensor(a!)[](b)` has `before = {b}` and one entry in `contained`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AliasInfo {
    /// Whether the operator writes to it: the `!`.
    pub is_write: bool,
    /// Sets it belongs to before the call.
    pub before: AliasSet,
    /// Sets it belongs to after the call; the same as `before` unless there is an arrow.
    pub after: AliasSet,
    /// For a list, the annotation of its elements where they have one.
    pub contained: Vec<AliasInfo>,
}

impl AliasInfo {
    /// An annotation with one set before and after: `(a)` or `(a!)`.
    pub fn new(set: &str, is_write: bool) -> AliasInfo {
        let sets = AliasSet::from_elem(set.to_owned(), 1);
        AliasInfo { is_write, before: sets.clone(), after: sets, contained: Vec::new() }
    }

    /// The annotation of a list that has `elements` for its elements and nothing of its own. Writing to the elements
    /// is writing to the list.
    pub(super) fn of_elements(elements: AliasInfo) -> AliasInfo {
        AliasInfo { is_write: elements.is_write, contained: vec![elements], ..AliasInfo::default() }
    }

    /// Whether it may alias anything before the call.
    pub fn is_wildcard_before(&self) -> bool {
        is_wildcard(&self.before)
    }

    /// Whether it may alias anything after the call.
    pub fn is_wildcard_after(&self) -> bool {
        is_wildcard(&self.after)
    }

    /// Every named set, of this and of what it contains, before the call and after it.
    pub fn named_sets(&self) -> impl Iterator<Item = &str> {
        let mut stack: SmallVec<[&AliasInfo; 2]> = SmallVec::from_elem(self, 1);
        std::iter::from_fn(move || {
            let info = stack.pop()?;
            stack.extend(&info.contained);
            Some(info.before.iter().chain(&info.after))
        })
        .flatten()
        .map(String::as_str)
        .filter(|set| *set != WILDCARD)
    }

    /// Whether a named set of `self` is one of `other`.
    pub fn shares_set_with(&self, other: &AliasInfo) -> bool {
        self.named_sets().any(|set| other.named_sets().any(|o| o == set))
    }
}

/// Sorts set names, last first, and drops repeats; the wildcard swallows the others.
pub(super) fn normalize(sets: &mut AliasSet) {
    if sets.len() < 2 {
        return;
    }
    if is_wildcard(sets) {
        sets.clear();
        sets.push(WILDCARD.to_owned());
        return;
    }
    sets.sort_unstable_by(|a, b| b.cmp(a));
    sets.dedup();
}

fn is_wildcard(sets: &AliasSet) -> bool {
    sets.iter().any(|set| set == WILDCARD)
}

impl fmt::Display for AliasInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        printer::write_alias(f, self)
    }
}
