//! Prints what is in checkpoints: `cargo run -p serialize --example inspect -- file.pt …`.

use serialize::{Archive, GlobalPolicy};

fn main() {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        if let Err(error) = inspect(&path) {
            println!("{path}: {error}");
            failed = true;
        }
    }
    std::process::exit(failed.into());
}

fn inspect(path: &str) -> serialize::Result<()> {
    let archive = Archive::open(path)?;
    if let Err(error) = archive.load() {
        println!("{path}: not weights-only: {error}");
    }
    let pickle = archive.load_with(&GlobalPolicy::any())?;
    println!(
        "{path}: {:?}, {} nodes, {} storages",
        archive.kind(),
        pickle.steps()?.len(),
        archive.storage_keys().len()
    );
    for id in pickle.ids() {
        if let Some(tensor) = pickle.tensor_record(id)? {
            let data = archive.native_storage_for(&tensor.storage, &tensor.dtype)?;
            println!(
                "  {} {:?} on {}, storage `{}` of {} bytes",
                tensor.dtype,
                tensor.size,
                tensor.storage.location,
                tensor.storage.key,
                data.len()
            );
        }
    }
    Ok(())
}
