//! `cargo +nightly fuzz run archive`: whole files, of both formats.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serialize::{Archive, GlobalPolicy};

fuzz_target!(|data: &[u8]| {
    let Ok(archive) = Archive::from_vec(data.to_vec()) else {
        return;
    };
    let Ok(pickle) = archive.load_with(&GlobalPolicy::any()) else {
        return;
    };
    for id in pickle.ids() {
        if let Ok(Some(tensor)) = pickle.tensor_record(id) {
            let _ = archive.native_storage_for(&tensor.storage, &tensor.dtype);
        }
    }
});
