//! What maxima are taken of.

use c10::{BFloat16, Element, Half};
use half::slice::HalfFloatSliceExt;

use crate::address::Address;
use crate::map::Stored;

/// A type that comparisons are made in.
pub(super) trait Compared: Stored<Raw = Self> + PartialOrd {
    /// What every element exceeds, or equals.
    const LOWEST: Self;
    /// Sum, wrapping.
    fn plus(self, b: Self) -> Self;
}

/// An element of an image.
pub(super) trait Pooled: Stored<Raw = Self> {
    /// Itself, or f32 for halves.
    type Compute: Compared;
    /// Whether `Compute` is this type.
    const ITSELF: bool;
    /// To the type of comparisons.
    fn widen(from: &[Self], to: &mut [Self::Compute]);
    /// Back.
    fn narrow(from: &[Self::Compute], to: &mut [Self]);
}

macro_rules! pooled {
    ($($T:ty, $lowest:expr, |$a:ident, $b:ident| $plus:expr;)*) => {$(
        impl Compared for $T {
            const LOWEST: $T = $lowest;
            #[inline(always)]
            fn plus(self, $b: $T) -> $T {
                let $a = self;
                $plus
            }
        }
        impl Pooled for $T {
            type Compute = $T;
            const ITSELF: bool = true;
            fn widen(from: &[$T], to: &mut [$T]) {
                to.copy_from_slice(from);
            }
            fn narrow(from: &[$T], to: &mut [$T]) {
                to.copy_from_slice(from);
            }
        }
    )*};
}

pooled! {
    f32, f32::NEG_INFINITY, |a, b| a + b;
    f64, f64::NEG_INFINITY, |a, b| a + b;
    u8, u8::MIN, |a, b| a.wrapping_add(b);
    i8, i8::MIN, |a, b| a.wrapping_add(b);
    i16, i16::MIN, |a, b| a.wrapping_add(b);
    i32, i32::MIN, |a, b| a.wrapping_add(b);
    i64, i64::MIN, |a, b| a.wrapping_add(b);
}

macro_rules! halves {
    ($($T:ty),*) => {$(
        impl Pooled for $T {
            type Compute = f32;
            const ITSELF: bool = false;
            fn widen(from: &[$T], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }
            fn narrow(from: &[f32], to: &mut [$T]) {
                to.convert_from_f32_slice(from);
            }
        }
    )*};
}

halves!(Half, BFloat16);

/// The address of an element, `offset` elements further.
pub(super) fn pointer<T>(first: Address, offset: isize) -> *mut T {
    first.0.cast::<T>().wrapping_offset(offset)
}

/// Images over channels over rows over columns, of any strides (in elements).
#[derive(Clone, Copy)]
pub(super) struct Planes {
    pub(super) images: usize,
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) strides: [isize; 4],
}

impl Planes {
    /// Of a tensor of three or four dimensions.
    pub(super) fn of(tensor: &c10::Tensor) -> c10::Result<Planes> {
        let (sizes, strides) = (tensor.sizes()?, tensor.strides()?);
        c10::check!(
            sizes.len() == 3 || sizes.len() == 4,
            "max_pool2d: expected a tensor of 3 or 4 dimensions, got sizes {sizes:?}"
        );
        let at = |from_end: usize| sizes.len().checked_sub(from_end);
        let size = |from_end: usize| at(from_end).map_or(1, |i| sizes[i] as usize);
        let stride = |from_end: usize| at(from_end).map_or(0, |i| strides[i] as isize);
        Ok(Planes {
            images: size(4),
            channels: size(3),
            height: size(2),
            width: size(1),
            strides: [stride(4), stride(3), stride(2), stride(1)],
        })
    }

    /// The offset of an element, in elements.
    #[inline(always)]
    pub(super) fn offset(&self, image: usize, channel: usize, y: usize, x: usize) -> isize {
        image as isize * self.strides[0]
            + channel as isize * self.strides[1]
            + y as isize * self.strides[2]
            + x as isize * self.strides[3]
    }

    /// Whether a plane lies in memory row by row without gaps.
    pub(super) fn is_dense_plane(&self) -> bool {
        self.strides[3] == 1 && self.strides[2] == self.width as isize
    }

    /// Whether the channels of a place lie side by side.
    pub(super) fn is_channels_last(&self) -> bool {
        self.strides[1] == 1 && self.channels > 1 && self.strides[3] != 1
    }
}

/// Copies a plane's elements, row by row, widened.
///
/// # Safety
/// `data` is the first element of a tensor described by `planes`, which nobody writes to.
pub(super) unsafe fn gather_plane<T: Pooled>(
    data: *const T,
    planes: &Planes,
    image: usize,
    channel: usize,
    out: &mut [T::Compute],
) {
    for (y, out) in out.chunks_exact_mut(planes.width.max(1)).enumerate() {
        let row = data.wrapping_offset(planes.offset(image, channel, y, 0));
        if planes.strides[3] == 1 {
            // SAFETY: a row of dense elements.
            T::widen(unsafe { std::slice::from_raw_parts(row, planes.width) }, out);
        } else {
            for (x, out) in out.iter_mut().enumerate() {
                // SAFETY: an element of the row.
                let value = unsafe { *row.wrapping_offset(x as isize * planes.strides[3]) };
                *out = T::Compute::cast_from(value);
            }
        }
    }
}
