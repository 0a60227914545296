//! The streams against PyTorch's.

use c10::{Generator, Result, Scalar, ScalarType, Tensor};
use iter::{TensorIterator, TensorIteratorConfig};
use ScalarType::{BFloat16, Bool, Byte, Char, Double, Float, Half, Int, Long, Short};

use super::create_cpu_generator;
use crate::test_tensor::{as_strided, element, kernel, set_element, zeros};

/// Recorded from PyTorch 2.13 on x86-64 with AVX2: per kernel and dtype an FNV-1a hash for each of three layouts
/// (contiguous; every second element of a vector; a transposed matrix of three columns). For each of [`SEEDS`] and
/// [`SIZES`] the hash takes in the elements in row-major order, then one `random_` int32 and one `normal_` float64
/// from the same generator, which show where in the sequence it was left.
#[rustfmt::skip]
const RECORDED: &[(&str, ScalarType, [u64; 3])] = &[
    ("uniform", Half, [0x36e542eb9590754c, 0x36e542eb9590754c, 0x3a7e5155dbd5f871]),
    ("uniform", BFloat16, [0xbb7642cc106635e7, 0xbb7642cc106635e7, 0x8298f7ea744c31dc]),
    ("uniform", Float, [0x6f0b9878c3a1cd20, 0x6f0b9878c3a1cd20, 0x954b26f25e033ce9]),
    ("uniform", Double, [0x3e26491deb49ebb5, 0x3e26491deb49ebb5, 0xd0288bda7f478941]),
    ("uniform_range", Half, [0xbdd34dbceecad989, 0xbdd34dbceecad989, 0x72feedd7ea157bf7]),
    ("uniform_range", BFloat16, [0xb7ffcf0e543103cc, 0xb7ffcf0e543103cc, 0xabd7515e4edd2148]),
    ("uniform_range", Float, [0x79241082628f12af, 0x79241082628f12af, 0xdf7c4fa7f7f48037]),
    ("uniform_range", Double, [0x2a4ff010ad983e9f, 0x2a4ff010ad983e9f, 0x9477deda687b01ee]),
    ("normal", Half, [0xbde02a55261c316f, 0x39593a46aded1514, 0xacf859c3ffe95de2]),
    ("normal", BFloat16, [0x85338951310972e3, 0xf2fe3a6cc66fc9d7, 0xdacb9db8f46ebccb]),
    ("normal", Float, [0x31f6154836f6b0a8, 0x373bbbc7a18a725b, 0x6819aff8fb3803b9]),
    ("normal", Double, [0x58d56f540ba03340, 0x6c2322516a0fa925, 0x6dc2a0e4470e3763]),
    ("normal_scaled", Half, [0x2c79faebb1a9efd9, 0xca213bb8e49015de, 0x3d1ad454715f0831]),
    ("normal_scaled", BFloat16, [0x00063467e3231ad9, 0x606f6937efc4d193, 0xed1587787b99a3c6]),
    ("normal_scaled", Float, [0xb70dcee6e13dac84, 0x20e0da09c5f9a403, 0xa261c8a2c04a9bbf]),
    ("normal_scaled", Double, [0x5a4dbbf5a43da774, 0x334a8242b526322e, 0x40bf425726c27fba]),
    ("bernoulli", Half, [0xcb9422b296fa8e20, 0xcb9422b296fa8e20, 0x96fa4123f712160f]),
    ("bernoulli", BFloat16, [0xeb874915bf802755, 0xeb874915bf802755, 0x8650cbb8fe019c1e]),
    ("bernoulli", Float, [0x0205f9c9712e91fd, 0x0205f9c9712e91fd, 0x807d4e5f2b249e3e]),
    ("bernoulli", Double, [0x56d13926a4161e1d, 0x56d13926a4161e1d, 0x85ed84a8e9cfb0ce]),
    ("bernoulli", Byte, [0x78dc50e80c563311, 0x78dc50e80c563311, 0x863c2bba8f02b6c4]),
    ("bernoulli", Char, [0x78dc50e80c563311, 0x78dc50e80c563311, 0x863c2bba8f02b6c4]),
    ("bernoulli", Short, [0x0b2bd6eb40569261, 0x0b2bd6eb40569261, 0xe34472546cdc01da]),
    ("bernoulli", Int, [0x7c4900942c0c9661, 0x7c4900942c0c9661, 0xa6516116ee05ff02]),
    ("bernoulli", Long, [0x0694664f59b8b301, 0x0694664f59b8b301, 0x81028352b0cfedb2]),
    ("bernoulli", Bool, [0x78dc50e80c563311, 0x78dc50e80c563311, 0x863c2bba8f02b6c4]),
    ("bernoulli_float", Half, [0xd98318e827fa0f8e, 0xd98318e827fa0f8e, 0xbdd9e615f9e6beae]),
    ("bernoulli_float", BFloat16, [0x74e7be1c78a46e96, 0x74e7be1c78a46e96, 0x8371017bf8f15eee]),
    ("bernoulli_float", Float, [0xe0affe0450636156, 0xe0affe0450636156, 0x1776a9aa10d5792e]),
    ("bernoulli_float", Double, [0x616aaa31a04755b6, 0x616aaa31a04755b6, 0xdcae9512ed3d5fce]),
    ("bernoulli_float", Byte, [0x6b16d323983900ba, 0x6b16d323983900ba, 0x9263aeb5c99e3426]),
    ("bernoulli_double", Half, [0xbc684c99c3e09d68, 0xbc684c99c3e09d68, 0x92bdddefdcd4dcff]),
    ("bernoulli_double", BFloat16, [0x2e6efbd5f6e219a1, 0x2e6efbd5f6e219a1, 0x0f21c9e04d763daa]),
    ("bernoulli_double", Float, [0x47563d26cb867f59, 0x47563d26cb867f59, 0x85f9b2651086c05a]),
    ("bernoulli_double", Double, [0x29333028de062d99, 0x29333028de062d99, 0x0a4a34694e847aaa]),
    ("bernoulli_double", Byte, [0xa6a2d09fa3cdc419, 0xa6a2d09fa3cdc419, 0x14f478a6d3940ae4]),
    ("exponential", Half, [0x2e23f29602124c81, 0x2e23f29602124c81, 0xb25da077d8f496af]),
    ("exponential", BFloat16, [0xf6131de874730566, 0xf6131de874730566, 0x5050d386c3ae90c7]),
    ("exponential", Float, [0x9f21fbf4406b48f7, 0x9f21fbf4406b48f7, 0x7e571ccd40b5ca3c]),
    ("exponential", Double, [0xfc41f452ceb44c70, 0xfc41f452ceb44c70, 0xe8727bc2d1dd549a]),
    ("random", Half, [0x6daa06acce621226, 0x6daa06acce621226, 0x03b9f5a48bfef7f0]),
    ("random", BFloat16, [0xb6fa2be81419e405, 0xb6fa2be81419e405, 0xe858b8b6ccf2f0ce]),
    ("random", Float, [0x824b3956c6d9356e, 0x824b3956c6d9356e, 0x19ed45de44b21b0d]),
    ("random", Double, [0xfdbbd981f63d4311, 0xfdbbd981f63d4311, 0x6b3ab8dd6055a898]),
    ("random", Byte, [0xa99aa13136d3d2c7, 0xa99aa13136d3d2c7, 0x79c21185cf2c0c05]),
    ("random", Char, [0xbaa7f98ae86648c7, 0xbaa7f98ae86648c7, 0x1b5f3dae9a601f05]),
    ("random", Short, [0xa369b7fa5db70c9a, 0xa369b7fa5db70c9a, 0x21a4afbe4f7b027e]),
    ("random", Int, [0x52bea8a0546ed93d, 0x52bea8a0546ed93d, 0x771beffffafe793c]),
    ("random", Long, [0x4b2ff4e8346fbf45, 0x4b2ff4e8346fbf45, 0xef5ef90710f0679f]),
    ("random", Bool, [0x338a99b5a06b959b, 0x338a99b5a06b959b, 0x1e669528195ee79d]),
    ("random_small", Half, [0xd59d2e9390197d5c, 0xd59d2e9390197d5c, 0x81282b4ee90a8156]),
    ("random_small", BFloat16, [0x4ce4dfb14b1b447e, 0x4ce4dfb14b1b447e, 0x96f14d4e2ed17493]),
    ("random_small", Float, [0xe012689648287c8e, 0xe012689648287c8e, 0x7c2a8dadf3f815db]),
    ("random_small", Double, [0x88a806332b0b547f, 0x88a806332b0b547f, 0x4477b342413d66bc]),
    ("random_small", Char, [0x04abe89cfded5a06, 0x04abe89cfded5a06, 0x6224b7b846b08b7f]),
    ("random_small", Short, [0xb40d73961f51ecc2, 0xb40d73961f51ecc2, 0x2fbbb97716d7dca1]),
    ("random_small", Int, [0xed432e587e036f9a, 0xed432e587e036f9a, 0x17589a98a4a1d9ad]),
    ("random_small", Long, [0xc0bfb57950033e22, 0xc0bfb57950033e22, 0x0c484850bbd76fd5]),
    ("random_wide", Long, [0x9bbd45e0a5e70b3c, 0x9bbd45e0a5e70b3c, 0x69a50a74547f355d]),
    ("random_from", Half, [0x8118bc1616542ad0, 0x8118bc1616542ad0, 0x9801717aadc3744a]),
    ("random_from", BFloat16, [0x665baf854d937aeb, 0x665baf854d937aeb, 0xd92f158bf7eb177a]),
    ("random_from", Float, [0x8b64a4a115b0c736, 0x8b64a4a115b0c736, 0x77dec62b10177069]),
    ("random_from", Double, [0x9831ad8abeb645d2, 0x9831ad8abeb645d2, 0x6c1b1464a28710d5]),
    ("random_from", Byte, [0xd66fc057b6599fb3, 0xd66fc057b6599fb3, 0xa4326e424e31d09e]),
    ("random_from", Char, [0xd50ac54517aff21e, 0xd50ac54517aff21e, 0x9405e63538412706]),
    ("random_from", Short, [0x8a104e1c7e6406fd, 0x8a104e1c7e6406fd, 0x3eed9b8f511b7881]),
    ("random_from", Int, [0x711a2ec0d81abf4e, 0x711a2ec0d81abf4e, 0x97cc4157092ca2e3]),
    ("random_from", Long, [0x562960a9d4724b82, 0x562960a9d4724b82, 0xa4c956d67e706178]),
    ("random_from", Bool, [0x169a134d7379327f, 0x169a134d7379327f, 0x5823ba8bf68a61e5]),
    ("random_full", Long, [0x0bf7ae7384f048c5, 0x0bf7ae7384f048c5, 0xca5c35569eb6391f]),
    ("randperm", Long, [0x277b0eb0c5dd1d25, 0, 0]),
    ("randperm", Int, [0x34cc34c392d01715, 0, 0]),
    ("randperm", Double, [0xcb853a4951bd699b, 0, 0]),
];

const SEEDS: [u64; 3] = [0, 42, (1 << 33) + 7];
const SIZES: [i64; 7] = [1, 7, 15, 16, 17, 33, 1000];
const LAYOUTS: [&str; 3] = ["contiguous", "sliced", "transposed"];

fn make(layout: &str, n: i64, dtype: ScalarType) -> Tensor {
    match layout {
        "contiguous" => zeros(&[n], dtype),
        "sliced" => as_strided(&zeros(&[2 * n + 1], dtype), &[n], &[2], 1),
        _ => as_strided(&zeros(&[3, n], dtype), &[n, 3], &[1, n], 0),
    }
}

fn fnv(hash: &mut u64, bytes: &[u8]) {
    for &byte in bytes {
        *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
}

fn hash_tensor(hash: &mut u64, tensor: &Tensor) {
    for i in 0..tensor.numel().unwrap() {
        match tensor.item_size() {
            1 if tensor.dtype() == Bool => fnv(hash, &[u8::from(element::<bool>(tensor, i))]),
            1 if tensor.dtype() == Char => fnv(hash, &element::<i8>(tensor, i).to_le_bytes()),
            1 => fnv(hash, &[element::<u8>(tensor, i)]),
            _ => match tensor.dtype() {
                Half => fnv(hash, &element::<c10::Half>(tensor, i).to_le_bytes()),
                BFloat16 => fnv(hash, &element::<c10::BFloat16>(tensor, i).to_le_bytes()),
                Short => fnv(hash, &element::<i16>(tensor, i).to_le_bytes()),
                Int => fnv(hash, &element::<i32>(tensor, i).to_le_bytes()),
                Float => fnv(hash, &element::<f32>(tensor, i).to_le_bytes()),
                Long => fnv(hash, &element::<i64>(tensor, i).to_le_bytes()),
                _ => fnv(hash, &element::<f64>(tensor, i).to_le_bytes()),
            },
        }
    }
}

fn two_numbers(
    name: &'static str,
    iter: &TensorIterator,
    a: f64,
    b: f64,
    generator: &Generator,
) -> Result<()> {
    type F = fn(&TensorIterator, f64, f64, Option<&Generator>) -> Result<()>;
    kernel::<F>(name)(iter, a, b, Some(generator))
}

fn one_number(name: &'static str, iter: &TensorIterator, a: f64, generator: &Generator) -> Result<()> {
    type F = fn(&TensorIterator, f64, Option<&Generator>) -> Result<()>;
    kernel::<F>(name)(iter, a, Some(generator))
}

fn random_from(iter: &TensorIterator, from: i64, to: Option<i64>, generator: &Generator) -> Result<()> {
    type F = fn(&TensorIterator, i64, Option<i64>, Option<&Generator>) -> Result<()>;
    kernel::<F>("random_from_kernel")(iter, from, to, Some(generator))
}

fn random(out: &Tensor, generator: &Generator) -> Result<()> {
    type F = fn(&TensorIterator, Option<&Generator>) -> Result<()>;
    kernel::<F>("random_kernel")(&TensorIterator::nullary_op(out)?, Some(generator))
}

/// `torch.linspace(0, 1, n)`, as the recording used.
fn probabilities(out: &Tensor, dtype: ScalarType) -> Tensor {
    type F = fn(&Scalar, &Scalar, i64, &[Tensor]) -> Result<()>;
    let p = zeros(&[out.numel().unwrap()], dtype);
    kernel::<F>("linspace_kernel")(
        &Scalar::from(0i64),
        &Scalar::from(1i64),
        p.numel().unwrap(),
        &[p.clone()],
    )
    .unwrap();
    as_strided(&p, out.sizes().unwrap(), &c10::compute_contiguous_strides(out.sizes().unwrap()), 0)
}

fn bernoulli_tensor(out: &Tensor, p: &Tensor, generator: &Generator) -> Result<()> {
    let iter = TensorIteratorConfig::new()
        .check_all_same_dtype(false)
        .resize_outputs(false)
        .add_output(out)
        .add_input(p)
        .build_standalone()?;
    type F = fn(&TensorIterator, Option<&Generator>) -> Result<()>;
    kernel::<F>("bernoulli_tensor_kernel")(&iter, Some(generator))
}

fn run(name: &str, out: &Tensor, generator: &Generator) -> Result<()> {
    let iter = &TensorIterator::nullary_op(out)?;
    match name {
        "uniform" => two_numbers("uniform_kernel", iter, 0.0, 1.0, generator),
        "uniform_range" => two_numbers("uniform_kernel", iter, -0.1, 0.33, generator),
        "normal" => two_numbers("normal_kernel", iter, 0.0, 1.0, generator),
        "normal_scaled" => two_numbers("normal_kernel", iter, 0.3, 1.7, generator),
        "bernoulli" => one_number("bernoulli_scalar_kernel", iter, 0.3, generator),
        "bernoulli_float" => bernoulli_tensor(out, &probabilities(out, Float), generator),
        "bernoulli_double" => bernoulli_tensor(out, &probabilities(out, Double), generator),
        "exponential" => one_number("exponential_kernel", iter, 1.5, generator),
        "random" => random(out, generator),
        "random_small" => random_from(iter, -5, Some(100), generator),
        "random_wide" => random_from(iter, -5, Some(1 << 40), generator),
        "random_from" => random_from(iter, 1, None, generator),
        "random_full" => random_from(iter, i64::MIN, None, generator),
        _ => unreachable!("{name}"),
    }
}

#[test]
fn every_stream_is_pytorchs() {
    let mut wrong = Vec::new();
    for &(name, dtype, recorded) in RECORDED.iter().filter(|case| case.0 != "randperm") {
        for (layout, recorded) in LAYOUTS.into_iter().zip(recorded) {
            let mut hash = 0xcbf2_9ce4_8422_2325;
            for seed in SEEDS {
                for n in SIZES {
                    let generator = create_cpu_generator(seed);
                    let out = make(layout, n, dtype);
                    run(name, &out, &generator).unwrap();
                    hash_tensor(&mut hash, &out);
                    let next = zeros(&[1], Int);
                    random(&next, &generator).unwrap();
                    hash_tensor(&mut hash, &next);
                    let next = zeros(&[1], Double);
                    run("normal", &next, &generator).unwrap();
                    hash_tensor(&mut hash, &next);
                }
            }
            if hash != recorded {
                wrong.push(format!("{name} {dtype} {layout}"));
            }
        }
    }
    assert!(wrong.is_empty(), "streams differ:\n{}", wrong.join("\n"));
}

#[test]
fn permutations_are_pytorchs() {
    type F = fn(i64, Option<&Generator>, &[Tensor]) -> Result<()>;
    for &(_, dtype, [recorded, ..]) in RECORDED.iter().filter(|case| case.0 == "randperm") {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for seed in SEEDS {
            for n in SIZES {
                let out = zeros(&[n], dtype);
                kernel::<F>("randperm_kernel")(n, Some(&create_cpu_generator(seed)), &[out.clone()]).unwrap();
                hash_tensor(&mut hash, &out);
            }
        }
        assert_eq!(hash, recorded, "randperm {dtype}");
    }
}

#[test]
fn large_normal_outputs_do_not_depend_on_the_number_of_threads() {
    let fill = |threads| {
        crate::test_tensor::with_threads(threads, || {
            let out = zeros(&[70_003], Float);
            run("normal", &out, &create_cpu_generator(1)).unwrap();
            (0..out.numel().unwrap()).map(|i| element::<f32>(&out, i).to_bits()).collect::<Vec<_>>()
        })
    };
    assert_eq!(fill(1), fill(2));
}

#[test]
fn arguments_out_of_range_are_errors() {
    let generator = create_cpu_generator(0);
    let out = zeros(&[4], Float);
    let p = zeros(&[4], Float);
    set_element(&p, 2, 1.5f32);
    let error = bernoulli_tensor(&out, &p, &generator).unwrap_err();
    assert!(error.message().contains("p_in >= 0 && p_in <= 1"), "{error}");
    let iter = TensorIterator::nullary_op(&out).unwrap();
    assert!(random_from(&iter, 3, Some(3), &generator).is_err());
}
