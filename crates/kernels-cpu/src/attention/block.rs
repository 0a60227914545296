//! Which keys queries see, and what of it a block of scores has to hold.

use std::ops::Range;

use super::operands::{row, Attended, Score, LANES};
use crate::linalg::{pack, Matrix};

use super::scores::add_panels;

/// A block of scores: which keys and queries they are of.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) first_query: usize,
    pub(super) queries: usize,
    pub(super) first_key: usize,
    pub(super) keys: usize,
    /// Columns of the scores.
    pub(super) lanes: usize,
    /// Whether queries see no later keys.
    pub(super) is_causal: bool,
}

/// Some queries of a block, and the keys at its beginning beyond which they see none.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub(super) first: usize,
    pub(super) queries: usize,
    pub(super) lanes: usize,
    pub(super) keys: usize,
}

impl Block {
    /// Keys of the block, of which a query sees those up to its own place, plus this number.
    fn lead(self) -> isize {
        self.first_query as isize - self.first_key as isize
    }

    /// Whether some queries don't see some keys of the block, because these come later.
    fn has_later_keys(self) -> bool {
        self.is_causal && self.lead() + 1 < self.keys as isize
    }

    /// The block in parts, which leave out most of what nobody sees.
    pub(super) fn strips(self) -> impl Iterator<Item = Strip> {
        let split = self.has_later_keys() && self.lanes > LANES;
        let most = if split { (self.lanes / 2).next_multiple_of(LANES) } else { self.lanes };
        (0..self.lanes).step_by(most).map(move |first| {
            let lanes = most.min(self.lanes - first);
            let queries = lanes.min(self.queries - first);
            Strip { first, queries, lanes, keys: self.keys_before(first + queries) }
        })
    }

    /// Keys that a query before the given one of the block sees.
    fn keys_before(self, query: usize) -> usize {
        if self.is_causal {
            (self.lead() + query as isize).clamp(0, self.keys as isize) as usize
        } else {
            self.keys
        }
    }

    /// Keys that some of [`LANES`] queries see.
    #[inline(always)]
    pub(super) fn keys_of_lanes(self, first: usize) -> usize {
        self.keys_before(first + LANES)
    }

    /// Adds a head's mask, a row per query, to the scores. `panels` has room for a block of scores.
    ///
    /// # Safety
    /// The mask has an element for every query and key, and nobody writes to it.
    pub(super) unsafe fn add_mask<T: Attended>(
        self,
        mask: Matrix<T>,
        scores: &mut [T::Score],
        panels: &mut [T::Score],
    ) {
        let part = Matrix {
            data: mask.at(self.first_query, self.first_key),
            rows: self.queries,
            cols: self.keys,
            ..mask
        };
        if self.lanes == 1 {
            for (key, score) in scores.iter_mut().enumerate().take(self.keys) {
                // SAFETY: an element of the mask, as the caller promises.
                *score = *score + unsafe { part.get(0, key) }.widen();
            }
            return;
        }
        let panels = &mut panels[..self.keys * self.lanes];
        pack(part, LANES, panels);
        add_panels(scores, panels, self.lanes, self.keys);
    }

    /// Takes keys that come after a query from it.
    pub(super) fn hide_later_keys<S: Score>(self, scores: &mut [S]) {
        if !self.has_later_keys() {
            return;
        }
        for (key, row) in (self.first_key..).zip(scores.chunks_exact_mut(self.lanes).take(self.keys)) {
            let earlier = key.saturating_sub(self.first_query).min(self.lanes);
            row[..earlier].fill(-S::INFINITY);
        }
    }
}

/// The keys from the first to the last that one of these queries sees.
///
/// # Safety
/// The mask has an element for every query and key, and nobody writes to it.
pub(super) unsafe fn seen_keys<T: Attended>(
    mask: Option<Matrix<T>>,
    is_causal: bool,
    (first_query, queries): (usize, usize),
    keys: usize,
) -> Range<usize> {
    let keys = if is_causal { keys.min(first_query + queries) } else { keys };
    let Some(mask) = mask.filter(|mask| mask.col_stride == 1) else { return 0..keys };
    let different_rows = if mask.row_stride == 0 { queries.min(1) } else { queries };
    let (mut first, mut end) = (keys, 0);
    for query in first_query..first_query + different_rows {
        let of_query = Matrix { data: mask.at(query, 0), rows: 1, cols: keys, ..mask };
        // SAFETY: the caller's promise.
        let mask = unsafe { row(of_query, 0) };
        first = hidden(mask[..first].iter(), mask[..first].chunks_exact(LANES));
        let rest = &mask[end..];
        end = keys - hidden(rest.iter().rev(), rest.rchunks_exact(LANES)).min(keys - end);
    }
    first.min(end)..end
}

/// Elements at the beginning that are minus infinity, given in groups, too.
fn hidden<'a, T: Attended>(
    elements: impl Iterator<Item = &'a T>,
    groups: impl Iterator<Item = &'a [T]>,
) -> usize {
    let is_hidden = |value: &T| value.widen() == -<T::Score as crate::vec::math::Real>::INFINITY;
    // Without a branch, so that a group is one comparison.
    let whole =
        groups.take_while(|group| group.iter().fold(true, |all, value| all & is_hidden(value))).count()
            * LANES;
    whole + elements.skip(whole).take_while(|value| is_hidden(value)).count()
}
