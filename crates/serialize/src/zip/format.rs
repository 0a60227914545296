//! Signatures and fixed sizes of the zip format (APPNOTE.TXT 4.3), shared by reader and writer.

pub(crate) const LOCAL_HEADER: u32 = 0x0403_4b50;
pub(crate) const CENTRAL_HEADER: u32 = 0x0201_4b50;
pub(crate) const DATA_DESCRIPTOR: u32 = 0x0807_4b50;
pub(crate) const ZIP64_END: u32 = 0x0606_4b50;
pub(crate) const ZIP64_LOCATOR: u32 = 0x0706_4b50;
pub(crate) const END: u32 = 0x0605_4b50;

pub(crate) const LOCAL_HEADER_SIZE: usize = 30;
pub(crate) const CENTRAL_HEADER_SIZE: usize = 46;
pub(crate) const ZIP64_END_SIZE: usize = 56;
pub(crate) const ZIP64_LOCATOR_SIZE: usize = 20;
pub(crate) const END_SIZE: usize = 22;

/// Tag of the extra field that carries 64-bit sizes and offsets.
pub(crate) const ZIP64_EXTRA: u16 = 0x0001;
/// A 32-bit field that says "look into the zip64 extra field".
pub(crate) const MAX32: u64 = 0xffff_ffff;
/// A 16-bit field that says the same.
pub(crate) const MAX16: u64 = 0xffff;

/// Bit 0: encrypted.
pub(crate) const FLAG_ENCRYPTED: u16 = 1;
/// Bit 3: CRC and sizes follow the data.
pub(crate) const FLAG_DESCRIPTOR: u16 = 1 << 3;
/// Bit 11: the name is UTF-8.
pub(crate) const FLAG_UTF8: u16 = 1 << 11;
