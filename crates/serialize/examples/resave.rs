//! Reads a zip checkpoint and writes it again, to compare the two: `cargo run -p serialize --example resave -- in.pt out.pt`.

use serialize::{Archive, ArchiveWriter, FileKind, GlobalPolicy, Pickler, SerializeError};

fn main() -> Result<(), SerializeError> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = paths.as_slice() else {
        eprintln!("usage: resave IN OUT");
        std::process::exit(2);
    };
    let archive = Archive::open(from)?;
    if archive.kind() == FileKind::Legacy {
        // Its references to storages have one item more, so the pickle cannot be taken over as it is.
        eprintln!("{from}: not a zip checkpoint");
        std::process::exit(1);
    }
    let pickle = archive.load_with(&GlobalPolicy::any())?;
    let mut writer = ArchiveWriter::create(to)?;
    writer.write_preamble(&Pickler::new().dump(&pickle)?)?;
    for key in archive.storage_keys() {
        writer.write_storage(key, &archive.storage(key)?)?;
    }
    writer.commit()
}
