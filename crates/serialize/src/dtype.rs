//! What the format says about dtypes: their names, their storage classes, their sizes.

/// (dtype, storage class in `torch`, bytes per element, bytes that are swapped as one unit)
///
/// Dtypes without a storage class of their own are kept in an `UntypedStorage` and written by `_rebuild_tensor_v3`.
#[rustfmt::skip]
const DTYPES: &[(&str, Option<&str>, usize, usize)] = &[
    ("float64", Some("DoubleStorage"), 8, 8),
    ("float32", Some("FloatStorage"), 4, 4),
    ("float16", Some("HalfStorage"), 2, 2),
    ("bfloat16", Some("BFloat16Storage"), 2, 2),
    ("int64", Some("LongStorage"), 8, 8),
    ("int32", Some("IntStorage"), 4, 4),
    ("int16", Some("ShortStorage"), 2, 2),
    ("int8", Some("CharStorage"), 1, 1),
    ("uint8", Some("ByteStorage"), 1, 1),
    ("bool", Some("BoolStorage"), 1, 1),
    ("complex128", Some("ComplexDoubleStorage"), 16, 8),
    ("complex64", Some("ComplexFloatStorage"), 8, 4),
    ("qint8", Some("QInt8Storage"), 1, 1),
    ("qint32", Some("QInt32Storage"), 4, 4),
    ("quint8", Some("QUInt8Storage"), 1, 1),
    ("quint4x2", Some("QUInt4x2Storage"), 1, 1),
    ("quint2x4", Some("QUInt2x4Storage"), 1, 1),
    ("uint16", None, 2, 2),
    ("uint32", None, 4, 4),
    ("uint64", None, 8, 8),
    ("complex32", None, 4, 2),
    ("float8_e4m3fn", None, 1, 1),
    ("float8_e4m3fnuz", None, 1, 1),
    ("float8_e5m2", None, 1, 1),
    ("float8_e5m2fnuz", None, 1, 1),
    ("float8_e8m0fnu", None, 1, 1),
    ("float4_e2m1fn_x2", None, 1, 1),
    ("bits1x8", None, 1, 1),
    ("bits2x4", None, 1, 1),
    ("bits4x2", None, 1, 1),
    ("bits8", None, 1, 1),
    ("bits16", None, 2, 2),
    ("int1", None, 1, 1),
    ("int2", None, 1, 1),
    ("int3", None, 1, 1),
    ("int4", None, 1, 1),
    ("int5", None, 1, 1),
    ("int6", None, 1, 1),
    ("int7", None, 1, 1),
    ("uint1", None, 1, 1),
    ("uint2", None, 1, 1),
    ("uint3", None, 1, 1),
    ("uint4", None, 1, 1),
    ("uint5", None, 1, 1),
    ("uint6", None, 1, 1),
    ("uint7", None, 1, 1),
];

/// Bytes per element of `dtype` (`"float32"`); `None` for a name that is no dtype.
pub fn element_size(dtype: &str) -> Option<usize> {
    Some(DTYPES.iter().find(|d| d.0 == dtype)?.2)
}

/// Bytes that trade places when the byte order of `dtype` changes: half an element for complex numbers.
pub fn swap_size(dtype: &str) -> Option<usize> {
    Some(DTYPES.iter().find(|d| d.0 == dtype)?.3)
}

/// The legacy storage class of `dtype` (`"FloatStorage"`), for those that have one.
pub fn storage_type_of_dtype(dtype: &str) -> Option<&'static str> {
    DTYPES.iter().find(|d| d.0 == dtype)?.1
}

/// The dtype of a legacy storage class; an `UntypedStorage` counts bytes and so is `uint8`.
pub fn dtype_of_storage_type(storage_type: &str) -> Option<&'static str> {
    if storage_type == "UntypedStorage" {
        return Some("uint8");
    }
    Some(DTYPES.iter().find(|d| d.1 == Some(storage_type))?.0)
}

/// All dtype names.
pub(crate) fn is_dtype(name: &str) -> bool {
    DTYPES.iter().any(|d| d.0 == name)
}

/// Reverses the bytes of every unit of `unit` bytes (see [`swap_size`]); a shorter rest is left as it is.
pub fn swap_bytes(data: &mut [u8], unit: usize) {
    if unit > 1 {
        data.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_consistent() {
        for (i, &(name, storage, size, swap)) in DTYPES.iter().enumerate() {
            assert!(DTYPES[..i].iter().all(|d| d.0 != name), "{name} twice");
            assert_eq!(size % swap, 0, "{name}");
            if let Some(storage) = storage {
                assert_eq!(dtype_of_storage_type(storage), Some(name));
            }
        }
    }

    #[test]
    fn swaps_halves_of_complex_numbers() {
        let mut data = [1, 2, 3, 4, 5, 6, 7, 8];
        swap_bytes(&mut data, swap_size("complex64").unwrap());
        assert_eq!(data, [4, 3, 2, 1, 8, 7, 6, 5]);
    }
}
