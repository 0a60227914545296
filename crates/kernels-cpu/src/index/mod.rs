//! Kernels that move elements to or from places that other tensors name.
//!
//! Every index is checked before the address that it makes is used. Data moves by element size; only what adds knows
//! dtypes. Where two indices may name one place, one thread handles both, in order: results do not depend on the
//! number of threads.

mod advanced;
mod bounds;
mod embedding_bag;
mod index_add;
mod index_select;
pub(crate) mod lines;
mod masked_fill;
mod nonzero;
mod scatter_gather;
mod scatter_reduce;
#[cfg(test)]
mod tests;

pub(crate) use scatter_gather::by_size;

/// Registers the family.
pub(crate) fn register() {
    advanced::register();
    embedding_bag::register();
    index_add::register();
    index_select::register();
    masked_fill::register();
    nonzero::register();
    scatter_gather::register();
    scatter_reduce::register();
}
