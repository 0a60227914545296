//! See [`crate::linalg::timings`].

use c10::{Result, ScalarType, Tensor};

use crate::linalg::timings::{best, numbers};
use crate::test_tensor::{kernel, with_threads, zeros};

type Forward = fn(&Tensor, &Tensor, Option<&Tensor>, &[i64], &[i64], &[i64], i64, &[Tensor]) -> Result<()>;
type Backward = fn(&Tensor, &Tensor, &[i64], &[i64], &[i64], i64, &[Tensor]) -> Result<()>;

#[test]
#[ignore = "prints times"]
fn timings_of_convolutions() {
    with_threads(1, || {
        for (n, c, size, o, k, s, groups) in [
            (4, 64, 56, 64, 3, 1, 1),
            (4, 128, 28, 128, 3, 1, 1),
            (4, 256, 14, 256, 3, 1, 1),
            (4, 64, 56, 64, 1, 1, 1),
            (4, 64, 56, 128, 3, 2, 1),
            (4, 3, 224, 64, 7, 2, 1),
            (4, 128, 56, 128, 3, 1, 128),
            (32, 1, 28, 16, 3, 1, 1),
        ] {
            let p = k / 2;
            let after = (size + 2 * p - k) / s + 1;
            let (x, w) = (numbers::<f32>(&[n, c, size, size]), numbers::<f32>(&[o, c / groups, k, k]));
            let g = numbers::<f32>(&[n, o, after, after]);
            let outs =
                [g.sizes(), x.sizes(), w.sizes()].map(|sizes| [zeros(sizes.unwrap(), ScalarType::Float)]);
            let (stride, padding) = (&[s, s][..], &[p, p][..]);
            let flops = 2.0 * (n * o * after * after * c / groups * k * k) as f64;
            let forward = kernel::<Forward>("conv_forward_kernel");
            let to_input = kernel::<Backward>("conv_input_backward_kernel");
            let to_weight = kernel::<Backward>("conv_weight_backward_kernel");
            let times = [
                best(|| forward(&x, &w, None, stride, padding, &[1, 1], groups, &outs[0]).unwrap()),
                best(|| to_input(&g, &w, stride, padding, &[1, 1], groups, &outs[1]).unwrap()),
                best(|| to_weight(&g, &x, stride, padding, &[1, 1], groups, &outs[2]).unwrap()),
            ];
            let rates =
                times.map(|time| format!("{time:.0?} {:.1} Gflop/s", flops / time.as_secs_f64() / 1e9));
            println!("conv {n}x{c}x{size}² → {o}, {k}x{k}/{s}, {groups} groups: {}", rates.join(", "));
        }
    });
}
