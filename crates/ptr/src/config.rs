//! Starting the engine inside a host program.

use std::sync::OnceLock;

use crate::Result;

/// How the engine runs inside its host.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Config {
    /// How many threads one operator may use, the calling one included. `None`: as many as the process's CPU
    /// affinity allows, or what `PTR_NUM_THREADS` says. A host with threads of its own hands in its share.
    pub threads: Option<usize>,
}

impl Config {
    /// The default configuration.
    pub fn new() -> Config {
        Config::default()
    }

    /// Sets [`Config::threads`].
    pub fn threads(mut self, threads: usize) -> Config {
        self.threads = Some(threads);
        self
    }
}

/// Registers operators, kernels and gradients. The first call does the work; later ones only apply the configuration.
///
/// # Errors
/// If the number of threads is zero.
pub fn init(config: Config) -> Result<()> {
    static STARTED: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        let kernels = kernels_cpu::init();
        kernels.and_then(|()| ops::init()).and_then(|()| autograd::init()).map_err(|error| error.to_string())
    });
    if let Err(message) = started {
        return Err(crate::Error::runtime(message.clone()));
    }
    match config.threads {
        Some(threads) => set_num_threads(threads),
        None => Ok(()),
    }
}

/// Sets how many threads one operator may use.
///
/// # Errors
/// If `threads` is zero.
pub fn set_num_threads(threads: usize) -> Result<()> {
    iter::parallel::set_num_threads(threads)
}

/// How many threads one operator may use.
pub fn num_threads() -> usize {
    iter::parallel::num_threads()
}
