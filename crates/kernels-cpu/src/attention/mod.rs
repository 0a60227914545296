//! Scaled dot-product attention and its gradients, in blocks of queries and keys.
//!
//! # Note [Attention in blocks]
//! The scores of all queries and keys are never in memory at once (Dao et al., *FlashAttention*, NeurIPS 2022): a piece
//! of work is a block of queries, past which blocks of keys go. The softmax of what has been seen so far is kept with
//! its maximum and sum, and is scaled down when a later block has a larger score (Milakov and Gimelshein, *Online
//! normalizer calculation for softmax*, 2018). What a backward pass needs of it is one number per query, the logarithm
//! of the sum of exponentials.
//!
//! Scores are kept transposed, a row of all queries of the block per key. Then every operand of every product lies as
//! the tiles of [`crate::linalg`] read it: keys, values and their gradients row by row, weights with the queries side
//! by side. Nothing is packed but the block of queries, once; and the softmax runs along the columns, where neighbours
//! are neighbours in a register.
//!
//! Keys that no query of a block sees are left out: those past the last query where attention is causal, in two parts of
//! the block each, and those at both ends that a mask hides from all, which is how padding and windows are hidden.
//!
//! Blocks depend on the sizes and masks alone, so the bits of the result don't depend on the number of threads.

mod backward;
mod block;
mod forward;
mod operands;
mod scores;
mod single;
#[cfg(test)]
mod tests;

/// Registers the family.
pub(crate) fn register() {
    backward::register();
    forward::register();
}
