//! `cargo test -p kernels-cpu --release -- --ignored --nocapture timings` prints times on one thread, best of many.

use std::time::{Duration, Instant};

use c10::{BFloat16, Element, Result, Tensor};

use crate::test_tensor::{kernel, set_elements, with_threads, zeros};

/// The shortest time of a call, over about a fifth of a second.
pub(crate) fn best(mut f: impl FnMut()) -> Duration {
    f();
    let start = Instant::now();
    let mut best = Duration::MAX;
    while start.elapsed() < Duration::from_millis(200) {
        let mut repeats = 1;
        let before = Instant::now();
        f();
        while before.elapsed() < Duration::from_micros(20) {
            f();
            repeats += 1;
        }
        best = best.min(before.elapsed() / repeats);
    }
    best
}

/// A tensor of small numbers.
pub(crate) fn numbers<T: Element>(sizes: &[i64]) -> Tensor {
    let tensor = zeros(sizes, T::SCALAR_TYPE);
    set_elements(&tensor, |i| T::from_f64((i % 17) as f64 / 8.0 - 1.0));
    tensor
}

fn mm<T: Element>(m: i64, k: i64, n: i64) {
    type F = fn(&Tensor, &Tensor, &[Tensor]) -> Result<()>;
    let call = kernel::<F>("mm_kernel");
    let (a, b, out) = (numbers::<T>(&[m, k]), numbers::<T>(&[k, n]), zeros(&[m, n], T::SCALAR_TYPE));
    let outs = [out];
    let time = best(|| call(&a, &b, &outs).unwrap());
    let flops = 2.0 * (m * k * n) as f64 / time.as_secs_f64() / 1e9;
    println!("mm {} {m}x{k}x{n}: {time:?}, {flops:.1} Gflop/s", T::SCALAR_TYPE);
}

#[test]
#[ignore = "prints times"]
fn timings_of_products() {
    with_threads(1, || {
        for n in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
            mm::<f32>(n, n, n);
            mm::<f64>(n, n, n);
        }
        mm::<f32>(1, 4096, 4096);
        mm::<f32>(4096, 4096, 1);
        mm::<f32>(32, 3072, 768);
        mm::<BFloat16>(512, 512, 512);
        mm::<BFloat16>(1, 4096, 4096);
        mm::<i32>(256, 256, 256);
    });
}
