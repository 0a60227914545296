//! `cargo +nightly fuzz run pickle`: what can be read and written can be read again, with the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serialize::{GlobalPolicy, Pickler, Unpickler};

fuzz_target!(|data: &[u8]| {
    let unpickler = Unpickler::new().policy(GlobalPolicy::any());
    let Ok(pickle) = unpickler.load(data) else {
        return;
    };
    let _ = pickle.steps();
    if let Ok(bytes) = Pickler::new().dump(&pickle) {
        let again = unpickler.load(&bytes).expect("what was written can be read");
        assert_eq!(Pickler::new().dump(&again).expect("and written"), bytes);
    }
});
